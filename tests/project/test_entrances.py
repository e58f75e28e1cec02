"""Where tracing begins and where it ends: `forward`, `torch.compile`, decorators, exports, what Dynamo skips."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from tests.project.tools import reach_of, reached_names, write

HEAD = "import torch\nfrom torch import nn\n"


def in_module(tmp_path: Path, text: str) -> set[str]:

    return reached_names(tmp_path, {"m.py": HEAD + dedent(text)})


def test_functions_under_and_given_to_compile_are_reached(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        from functools import partial
        @torch.compile
        def one(x): return x
        @torch.compile(dynamic=True)
        def two(x): return x
        @partial(torch.compile, dynamic=True)
        def three(x): return x
        def four(x): return x
        fast = torch.compile(four)
        def compile(f): return f
        def five(x): return x
        slow = compile(five)
        class Runner:
            def __init__(self): self.run = torch.compile(self._run)
            def _run(self, x): return x
        """,
    )
    assert found == {"one", "two", "three", "four", "Runner._run"}


def test_decorators_put_their_wrappers_around_forward(tmp_path: Path) -> None:
    files = {
        "deco.py": """
            import torch
            from functools import wraps
            def update(forward):
                def grow(self, x): return x
                @wraps(forward)
                def wrapper(self, x):
                    grow(self, x)
                    return forward(self, x)
                return wrapper
            def unused(forward): return forward
            def option(size):
                def decorator(forward):
                    def wrapped(*args): return forward(*args)
                    return wrapped
                return decorator
            """,
        "m.py": """
            from torch import nn
            from deco import update, option
            class A(nn.Module):
                @update
                def forward(self, x): return x
            class B(nn.Module):
                @option(3)
                def forward(self, x): return x
            """,
    }
    found = reach_of(write(tmp_path, files))
    by_name = {each.qualname: each for _, each in found}
    assert set(by_name) == {"A.forward", "B.forward", "update.wrapper", "update.grow", "option.decorator.wrapped"}
    assert by_name["update.grow"].class_qualified == "m.A"
    assert by_name["option.decorator.wrapped"].class_qualified is None


def test_a_decorator_with_optional_arguments_is_not_traced_itself(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        import functools
        import torch.nn as nn
        def documented(function=None, *, title=""):
            def decorate(function):
                print("documents")
                return function
            if function is not None:
                return decorate(function)
            return decorate
        def counted(function=None, *, step=1):
            def decorate(function):
                @functools.wraps(function)
                def wrapper(*args):
                    return function(*args)
                return wrapper
            return decorate if function is None else decorate(function)
        class A(nn.Module):
            @documented
            @counted(step=2)
            def forward(self, x):
                return x
        """,
    )
    assert found == {"A.forward", "counted.decorate.wrapper"}


def test_a_wrapper_around_several_classes_belongs_to_none(tmp_path: Path) -> None:
    text = """
        def update(forward):
            def wrapper(self, x): return forward(self, x)
            return wrapper
        class A(nn.Module):
            @update
            def forward(self, x): return x
        class B(nn.Module):
            @update
            def forward(self, x): return x
        """
    in_module(tmp_path, text)
    owners = {each.qualname: each.class_qualified for _, each in reach_of(tmp_path)}
    assert owners == {"update.wrapper": None, "A.forward": "m.A", "B.forward": "m.B"}


def test_what_stops_dynamo_stops_the_search(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        import torch._dynamo as dynamo
        @torch.compiler.disable
        def a(x): return inner(x)
        @dynamo.disable(recursive=False)
        def b(x): return x
        @torch.jit.script
        def c(x): return x
        @torch.compiler.assume_constant_result
        def d(x): return x
        def constant(function):
            function._dynamo_marked_constant = True
            return function
        @constant
        def e(x): return x
        def inner(x): return x
        class A(nn.Module):
            def forward(self, x): return a(b(c(d(e(x)))))
        """,
    )
    assert found == {"A.forward"}


def test_custom_functions_are_reached_by_apply(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        class Round(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x
        class Other(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x
        class A(nn.Module):
            def forward(self, x): return Round.apply(x)
        """,
    )
    assert found == {"A.forward", "Round.forward"}


def test_what_torchscript_leaves_to_python_is_traced(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        class A(nn.Module):
            @torch.jit.unused
            def forward(self, x): return inner(x)
        @torch.jit.ignore
        def inner(x): return x
        """,
    )
    assert found == {"A.forward", "inner"}


def test_methods_of_distributions_and_transforms_are_traced(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        from torch.distributions import Transform
        class Shift(Transform):
            def __init__(self): ...
            def _call(self, x): return self.add(x)
            def add(self, x): return x
        """,
    )
    assert found == {"Shift._call", "Shift.add"}


def test_functions_that_a_package_exports_are_traced_if_they_take_tensors(tmp_path: Path) -> None:
    solve = """
        import torch
        def solve(func, y):
            solver = Solver(func)
            return solver.integrate(checked(y))
        def checked(y): return y.detach()
        def download(url): return log(url)
        def log(url): ...
        def other(y: torch.Tensor): ...
        class Solver:
            def __init__(self, func): ...
            def integrate(self, y): return y
        class Plan:
            def sample(self, x): return x.unsqueeze(0) + self._hidden()
            def _hidden(self): ...
            def _spare(self): ...
        class Lines(list):
            def sample(self, x): return x.unsqueeze(0)
        class Trainer:
            def loss(self, x): return x.unsqueeze(0)
            def train(self): self.optimizer.zero_grad()
    """
    script = "import torch\ndef train(y: torch.Tensor): ...\n"
    named = "from ._impl import Lines, Plan, Trainer, solve, download\n"
    init = f"{named}try:\n    from ._impl import other\nexcept ImportError: ...\n"
    found = reached_names(tmp_path, {"lib/__init__.py": init, "lib/_impl.py": solve, "main.py": script})
    plan = {"Plan.sample", "Plan._hidden"}
    assert found == {"solve", "checked", "Solver.__init__", "Solver.integrate", *plan, "other"}


def test_functions_of_a_package_that_take_tensors_and_that_nothing_calls_are_traced(tmp_path: Path) -> None:
    losses = """
        import torch
        def ranked(scores: torch.Tensor): return sorted_by(scores)
        def sorted_by(scores: torch.Tensor): return scores
        def prepared(batch: torch.Tensor): ...
        def _own(scores: torch.Tensor): ...
        def smooth(scores, labels): return torch.softmax(scores, -1) - labels
        def plain(scores, labels): return scores - labels
        def named(path: str): ...
        @register
        def registered(scores: torch.Tensor): ...
    """
    files = {
        "lib/__init__.py": "",
        "lib/losses/__init__.py": "",
        "lib/losses/ranks.py": losses,
        "lib/training.py": "import torch\nfrom lib.losses.ranks import prepared\ndef train(): prepared(1)\n",
        "lib/tests/some.py": "import torch\ndef check(x: torch.Tensor): ...\n",
        "loose.py": "import torch\ndef run(x: torch.Tensor): ...\n",
    }
    assert reached_names(tmp_path, files) == {"ranked", "sorted_by", "smooth"}


def test_methods_of_a_class_of_tensors_are_traced(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        import torch
        class Group(torch.Tensor):
            def __new__(cls, data): return data
            def __matmul__(self, other): return self.act(other)
            def act(self, other): return other
        """,
    )
    assert found == {"Group.__matmul__", "Group.act"}


def test_what_only_others_call_is_told_from_what_a_module_calls(tmp_path: Path) -> None:
    part = """
        import torch
        from torch import nn
        def solve(y):
            noted()
            return step(y.detach())
        def step(y): return both(y)
        def both(y): return y
        def noted(): print("solved")
        class A(nn.Module):
            def forward(self, y): return step(y)
    """
    files = {"lib/__init__.py": "from ._impl import A, solve\n", "lib/_impl.py": part}
    found = {each.qualname: each.offered for _, each in reach_of(write(tmp_path, files))}
    assert found == {"A.forward": False, "step": False, "both": False, "solve": False, "noted": True}


def test_what_every_module_has_leads_nowhere_by_its_name(tmp_path: Path) -> None:
    text = """
        class Engine:
            def train(self): return 1
            def refine(self): return 2
        class A(nn.Module):
            def forward(self, x):
                self.part.train()
                self.part.refine()
                return x
        """
    assert in_module(tmp_path, text) == {"A.forward", "Engine.refine"}


def test_scripts_are_not_traced(tmp_path: Path) -> None:
    part = """
        import torch
        def loaded(x: torch.Tensor, path): return torch.load(path) + x
        def written(x: torch.Tensor, path):
            with open(path) as file: file.write(str(x))
        def trained(x: torch.Tensor, optimizer): optimizer.zero_grad()
        def differentiated(x: torch.Tensor, scaler): scaler.scale(x.sum()).backward()
        def measured(model, x: torch.Tensor): return model.eval()(x)
        def computed(x: torch.Tensor): return x.exp()
        def moved(x): return torch.zeros(x.shape, device=x.device)
        def main(arguments): return torch.ones(arguments.size_of, device=arguments.device)
    """
    assert reached_names(tmp_path, {"lib/__init__.py": "", "lib/part.py": part}) == {"computed", "moved"}


def test_scripts_that_hand_tensors_on_are_not_traced(tmp_path: Path) -> None:
    part = """
        import torch
        def computed(x: torch.Tensor): return x.exp()
        def handed(x): return computed(x)
        def trained(x, optimizer):
            optimizer.zero_grad()
            return computed(x)
    """
    files = {"lib/__init__.py": "from .part import handed, trained", "lib/part.py": part}
    assert reached_names(tmp_path, files) == {"computed", "handed"}


def test_forward_of_a_class_with_a_base_of_another_library_is_traced(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        import enum
        import chainer
        from elsewhere.models import Base
        from torch.nn.modules.loss import _WeightedLoss
        from torch.autograd import Function
        class Model(Base):
            def forward(self, x): return self.part(x)
            def part(self, x): return x
            def spare(self, x): return x
        class Loss(_WeightedLoss):
            def forward(self, x, y): return x - y
        class Rule(Function):
            @staticmethod
            def forward(ctx, x): return x
        class Kind(enum.Enum):
            def forward(self, x): return x
        class Chain(chainer.Chain):
            def forward(self, x): return x
        """,
    )
    assert found == {"Model.forward", "Model.part", "Loss.forward"}
