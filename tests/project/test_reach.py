"""What `forward` leads to, and what it does not."""

from __future__ import annotations

from pathlib import Path

from tests.project.tools import in_module, reach_of, reached_names, write


def test_forward_leads_to_functions_methods_and_properties(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        def helper(x): return deeper(x)
        def deeper(x): return x
        def unused(x): return x
        class A(nn.Module):
            def __init__(self): self.setup()
            def setup(self): ...
            def forward(self, x): return self.step(helper(x)) + self.bias
            def step(self, x): return x
            def spare(self, x): return x
            @property
            def bias(self): return 1
        """,
    )
    assert found == {"A.forward", "A.step", "A.bias", "helper", "deeper"}


def test_a_constructor_hands_functions_to_what_keeps_and_calls_them(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        def squash(x): return x
        def spare(x): return x
        class Cell(nn.Module):
            def __init__(self, start, activation):
                super().__init__()
                self.start, self.activation = start, activation
            def forward(self, x): return self.activation(self.start(x))
        class Leaky(Cell):
            def __init__(self): super().__init__(start=self.begin, activation=None)
            def begin(self, x): return x
            def unused(self, x): return x
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = Cell(None, squash)
            def forward(self, x): return self.cell(x)
        class Kept(nn.Module):
            def __init__(self, hook):
                super().__init__()
                self.hook = hook
            def forward(self, x): return x
        class Keeps(Kept):
            def __init__(self): super().__init__(spare)
        """,
    )
    assert found == {"Cell.forward", "Model.forward", "Kept.forward", "Leaky.begin", "squash"}


def test_a_library_calls_the_methods_that_it_marks_while_it_constructs(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        from pydantic import BaseModel, field_validator
        from functools import wraps
        class Inputs(BaseModel):
            time: torch.Tensor
            @field_validator("time", mode="before")
            @classmethod
            def positive(cls, value): return value
            def unused(self): return 1
        class A(nn.Module):
            def forward(self, x): return Inputs(time=x).time
        """,
    )
    assert found == {"A.forward", "Inputs.positive"}


def test_forward_of_a_metric_is_in_the_library(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        from torchmetrics import Metric
        class Base(Metric):
            def update(self, x): self.total = self.loss(x)
            def loss(self, x): return x
            def spare(self, x): return x
        class Worst(Base):
            def compute(self): return self.total
            def loss(self, x): return x
        """,
    )
    assert found == {"Base.update", "Base.loss", "Worst.loss", "Worst.compute"}


def test_a_class_that_is_no_module_has_no_forward(tmp_path: Path) -> None:
    assert in_module(tmp_path, "class A:\n    def forward(self, x): return x\n") == set()


def test_coroutines_lead_nowhere(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        def helper(x): return x
        async def wait(x): return helper(x)
        class A(nn.Module):
            def forward(self, x):
                self.tell(x)
                return wait(x)
            async def tell(self, x): return helper(x)
        """,
    )
    assert found == {"A.forward"}


def test_what_another_compiler_takes_is_not_traced(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        import numba
        import triton
        from numba import njit
        def helper(x): return x
        @numba.jit(nopython=True, parallel=True)
        def path(x): return helper(x)
        @njit
        def cost(x): return helper(x)
        @triton.jit
        def kernel(x): return helper(x)
        class A(nn.Module):
            def forward(self, x):
                return path(x) + cost(x) + kernel(x)
        """,
    )
    assert found == {"A.forward"}


def test_calls_on_self_land_in_ancestors_and_in_subclasses(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        class Base(nn.Module):
            def forward(self, x): return self.mix(x)
            def mix(self, x): return x
        class Leaf(Base):
            def mix(self, x): return super().mix(self.more(x))
            def more(self, x): return x
        """,
    )
    assert found == {"Base.forward", "Base.mix", "Leaf.mix", "Leaf.more"}


def test_a_method_named_by_its_class_is_not_that_of_a_subclass(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        class First:
            def mix(self, x): return x
        class Base(First):
            pass
        class Leaf(Base):
            def mix(self, x): return x
        class Model(nn.Module):
            def forward(self, x): return Base.mix(self, x)
        """,
    )
    assert found == {"Model.forward", "First.mix"}


def test_super_in_a_mixin_lands_beside_it(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        class Mixin:
            def prepare(self, x): return super().prepare(x)
        class Base(nn.Module):
            def prepare(self, x): return x
        class A(Mixin, Base):
            def forward(self, x): return self.prepare(x)
        """,
    )
    assert found == {"A.forward", "Mixin.prepare", "Base.prepare"}


def test_what_is_passed_by_name_counts_as_called(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        from functools import partial
        from torch.utils.checkpoint import checkpoint
        def act(x, n): return x
        class A(nn.Module):
            def forward(self, x):
                run = partial(act, n=1)
                return checkpoint(self._inner, run(x))
            def _inner(self, x): return x
        """,
    )
    assert found == {"A.forward", "A._inner", "act"}


def test_objects_are_followed_by_annotation_assignment_and_construction(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        from typing import Optional
        from dataclasses import dataclass
        class Cache:
            def update(self, x): return x
            def unused(self): ...
        class Fast(Cache):
            def update(self, x): return x
        @dataclass
        class Output:
            x: int
            def __post_init__(self): ...
        class Table:
            def __init__(self): ...
            def look(self, x): return x
            @classmethod
            def build(cls): return cls()
        class Holder:
            def pick(self, x): return x
        class A(nn.Module):
            def __init__(self): self.holder = Holder()
            def forward(self, x, cache: Optional[Cache] = None):
                table = Table.build()
                cache.update(table.look(self.holder.pick(x)))
                return Output(x)
        """,
    )
    assert found == {
        "A.forward", "Cache.update", "Fast.update", "Table.build", "Table.__init__", "Table.look", "Holder.pick",
        "Output.__post_init__",
    }  # fmt: skip


def test_tables_of_functions_are_followed(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        def one(x): return x
        def two(x): return x
        TABLE = {"one": one}
        class Registry:
            table = {"two": two}
            def __getitem__(self, name): return self.table[name]
        REGISTRY = Registry()
        class A(nn.Module):
            def __init__(self, kind): self.f = TABLE[kind]
            def forward(self, x): return self.f(x) + REGISTRY["two"](x)
        """,
    )
    assert {"A.forward", "one", "two"} <= found


def test_nested_functions_are_reached_where_they_are_used(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        class A(nn.Module):
            def forward(self, x):
                def used(y): return self.step(y)
                def unused(y): return y
                return used(x)
            def step(self, y): return y
        """,
    )
    assert found == {"A.forward", "A.forward.used", "A.step"}


def test_a_helper_module_without_torch_is_reached_too(tmp_path: Path) -> None:
    files = {
        "p/__init__.py": "",
        "p/talk.py": "def say(): print('hello')\n",
        "p/m.py": """
            from torch import nn
            from .talk import say
            class A(nn.Module):
                def forward(self, x): say()
            """,
    }
    assert reached_names(tmp_path, files) == {"A.forward", "say"}


def test_local_imports_count_in_their_function_only(tmp_path: Path) -> None:
    files = {
        "p/__init__.py": "",
        "p/a.py": "def go(x): return x\n",
        "p/b.py": "def go(x): return x\n",
        "p/m.py": """
            from torch import nn
            from .a import go
            class A(nn.Module):
                def forward(self, x):
                    from .b import go
                    return go(x)
            """,
    }
    write(tmp_path, files)
    assert {(path, each.qualname) for path, each in reach_of(tmp_path)} == {("p/b.py", "go"), ("p/m.py", "A.forward")}


def test_methods_of_unknown_objects_are_found_by_name_in_the_modules_own_classes(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        class Layer(nn.Module):
            def attend(self, x): return x
        class A(nn.Module):
            def __init__(self): self.layers = nn.ModuleList([Layer()])
            def forward(self, x):
                for layer in self.layers:
                    x = layer.attend(x)
                return x
        """,
    )
    assert found == {"A.forward", "Layer.attend"}


def test_the_reason_names_the_forward(tmp_path: Path) -> None:
    in_module(tmp_path, "def helper(x): return x\nclass A(nn.Module):\n    def forward(self, x): return helper(x)\n")
    assert {each.via for _, each in reach_of(tmp_path)} == {"forward of A"}


def test_a_property_is_told_from_its_setter_by_line(tmp_path: Path) -> None:
    text = """
        class A(nn.Module):
            @property
            def size(self): return 1
            @size.setter
            def size(self, value): ...
            def forward(self, x): return self.size
        """
    in_module(tmp_path, text)
    assert [each.line for _, each in reach_of(tmp_path) if each.qualname == "A.size"] == [6]


def test_static_method_that_takes_its_class_reaches_what_subclasses_make_of_a_method(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        from functools import partial
        class Base(torch.autograd.Function):
            def loss(x): raise NotImplementedError
            @staticmethod
            def forward(cls, ctx, x): return partial(Base.of_chunk, loss=cls.loss)(x)
            @staticmethod
            def of_chunk(x, loss): return loss(x)
        class Squared(Base):
            @staticmethod
            def loss(x): return x * x
            @classmethod
            def forward(cls, ctx, x): return super().forward(cls, ctx, x)
            @staticmethod
            def unused(first, x): return first.other(x)
            def other(x): return x
        class A(nn.Module):
            def forward(self, x): return Squared.apply(x)
        """,
    )
    assert found == {"A.forward", "Squared.forward", "Base.forward", "Base.loss", "Base.of_chunk", "Squared.loss"}
