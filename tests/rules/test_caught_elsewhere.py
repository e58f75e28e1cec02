"""Code whose exceptions a caller may catch, in this file or another, is left to eager mode."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.project.catching import catching_modules
from graphmend_codemod.rules.framework.examples import Example
from graphmend_codemod.rules.framework.registry import all_rules
from tests.project.tools import index_of
from tests.tools.fixes import embedded, fixed, fixed_among

_SINCE_3_11 = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python parses `except*` since 3.11")
_GUARD = """
import torch
from torch import nn


def checked(x: torch.Tensor):
    if (x < 0).any():
        raise ValueError("negative")
    return x


class Part(nn.Module):
    def check(self, x):
        return checked(x)

    def forward(self, x: torch.Tensor):
        return self.check(x)
"""
_MANAGERS = """
import contextlib


@contextlib.contextmanager
def tolerant():
    try:
        yield
    except ValueError:
        pass


@contextlib.contextmanager
def strict():
    yield


@contextlib.contextmanager
def around():
    with strict():
        yield


@contextlib.contextmanager
def prepared():
    try:
        import numpy
    except ValueError:
        pass
    with tolerant():
        pass
    try:
        yield
    except ValueError as error:
        raise KeyError from error
    finally:
        print("left")


@contextlib.contextmanager
def twice():
    with strict(), tolerant():
        yield


@contextlib.contextmanager
def unknown():
    with library.manager():
        yield


@contextlib.contextmanager
def returning():
    try:
        yield
    finally:
        return


quiet = contextlib.suppress(ValueError)


def made():
    return contextlib.suppress(ValueError)


def attempt(function, *given):
    try:
        return function(*given)
    except ValueError:
        return given[0]


def attempted(function):
    def inner(*given):
        try:
            return function(*given)
        except ValueError:
            return given[-1]

    return inner


class Tolerant:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is not None


class Strict(Tolerant):
    def __exit__(self, kind, error, trace):
        self.done = True


class Counted(Strict):
    def __exit__(self, *given):
        self.count = 1
        return super().__exit__(*given)


class Passing(Tolerant):
    def __exit__(self, *given):
        return super().__exit__(*given)
"""
_CALLER = """
import contextlib

import torch
from torch import nn

import managers
from guard import Part, checked


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.parts = nn.ModuleList([Part(), Part()])
        self.more = nn.ModuleList(
            [
                Part(),
                Part(),
            ]
        )
        self.whole = nn.Sequential(Part(), nn.ReLU())
        self.quiet = contextlib.suppress(ValueError)

    def inner(self, x):
        return self.part(x)

    def forward(self, x):
{body}
        return x * 2
"""


def _finding(project: Path, body: str, tail: str = "") -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    (project / "guard.py").write_text(_GUARD)
    (project / "managers.py").write_text(_MANAGERS)
    (project / "caller.py").write_text(_CALLER.format(body=lines) + tail)
    answers = set()
    for paths in ([project], [project / "guard.py"]):
        found = api.check(paths, Settings(project), cache=False)
        assert not found.problems
        (each,) = (each for each in found.findings if each.code == "GM301")
        answers.add(each.declined or "")
    (answer,) = answers
    return answer


@pytest.mark.parametrize(
    ("body", "by"),
    [
        ("try:\n    x = self.part(x)\nexcept ValueError:\n    pass", "except ValueError"),
        ("try:\n    x = checked(x)\nexcept Exception:\n    pass", "except Exception"),
        ("try:\n    x = self.inner(x)\nexcept:\n    pass", "except"),
        ("try:\n    x = self.part.check(x)\nexcept (KeyError, ValueError):\n    pass", "except KeyError, ValueError"),
        ("for part in self.parts:\n    try:\n        x = part(x)\n    except ValueError:\n        break", "except Val"),
        ("try:\n    for part in self.more:\n        x = part(x)\nexcept ValueError:\n    pass", "except ValueError"),
        ("try:\n    x = self.whole(x)\nexcept ValueError:\n    pass", "except ValueError"),
        ("with contextlib.suppress(ValueError):\n    x = self.part(x)", "with contextlib.suppress"),
        ("with self.quiet:\n    x = self.part(x)", "with self.quiet"),
        ("with managers.tolerant():\n    x = self.part(x)", "with managers.tolerant"),
        ("with managers.Tolerant():\n    x = self.part(x)", "with managers.Tolerant"),
        ("with managers.Passing():\n    x = self.part(x)", "with managers.Passing"),
        ("with managers.quiet:\n    x = self.part(x)", "with managers.quiet"),
        ("with managers.made():\n    x = self.part(x)", "with managers.made"),
        ("quiet = contextlib.suppress(ValueError)\nwith quiet:\n    x = self.part(x)", "with contextlib.suppress"),
        (
            "with contextlib.ExitStack() as stack:\n    stack.enter_context(managers.quiet)\n    x = self.part(x)",
            "with managers.quiet",
        ),
        ("with contextlib.ExitStack() as stack:\n    use(stack)\n    x = self.part(x)", "with contextlib.ExitStack"),
        ("with contextlib.ExitStack() as self.stack:\n    x = self.part(x)", "with contextlib.ExitStack"),
        ("with managers.strict(), managers.tolerant():\n    x = self.part(x)", "with managers.tolerant"),
        ("with managers.twice():\n    x = self.part(x)", "with managers.twice"),
        ("with managers.unknown():\n    x = self.part(x)", "with managers.unknown"),
        ("with managers.returning():\n    x = self.part(x)", "with managers.returning"),
        ("try:\n    x = self.part(x)\nexcept ValueError:\n    if self.training:\n        raise", "except ValueError"),
        ("try:\n    x = self.part(x)\nexcept ValueError:\n    self.bad = True\n    raise", "except ValueError"),
        (
            "for part in self.parts:\n    try:\n        x = part(x)\n    except ValueError:\n"
            "        if self.training:\n            break\n        raise",
            "except ValueError",
        ),
        (
            "try:\n    x = self.part(x)\nexcept TypeError as error:\n    raise KeyError from error\n"
            "except ValueError:\n    pass",
            "except ValueError",
        ),
        ("try:\n    x = self.part(x)\nfinally:\n    return x", "finally"),
        ("for part in self.parts:\n    try:\n        x = part(x)\n    finally:\n        break", "finally"),
        pytest.param(
            "try:\n    x = self.part(x)\nexcept* ValueError:\n    x = x * 0", "except ValueError", marks=_SINCE_3_11
        ),
    ],
)
def test_a_caller_may_catch_it(tmp_path: Path, body: str, by: str) -> None:
    reason = _finding(tmp_path, body)
    assert f"may be caught: `{by}" in reason
    assert "in Model.forward (caller.py)" in reason


@pytest.mark.parametrize(
    "body",
    [
        "x = self.part(x)",
        "try:\n    x = self.part(x)\nexcept ImportError:\n    pass",
        "try:\n    y = x.view(-1)\nexcept ValueError:\n    pass\nx = self.part(x)",
        "try:\n    x = self.part(x)\nfinally:\n    y = 1",
        "with torch.no_grad(), managers.strict(), managers.Strict(), managers.Counted():\n    x = self.part(x)",
        "with contextlib.suppress(ImportError):\n    x = self.part(x)",
        "try:\n    x = self.part(x)\nexcept ValueError as error:\n    print(error)\n    raise",
        "try:\n    x = self.part(x)\nexcept Exception as error:\n    raise RuntimeError('model') from error",
        "try:\n    x = self.part(x)\nexcept ValueError:\n    if x:\n        raise\n    else:\n        raise KeyError",
        "with contextlib.ExitStack() as stack:\n    stack.enter_context(managers.strict())\n    x = self.part(x)",
        "with contextlib.ExitStack():\n    x = self.part(x)",
        "with managers.around():\n    x = self.part(x)",
        "with managers.prepared():\n    x = self.part(x)",
    ],
)
def test_others_let_it_through(tmp_path: Path, body: str) -> None:
    assert _finding(tmp_path, body) == ""


_STEPS = """
import contextlib

import torch
from torch import nn


class Model(nn.Module):
    {mark}
    def steps(self, x: torch.Tensor):
        if (x < 0).any():
            raise ValueError("negative")
        yield x

    def forward(self, x):
        steps = self.steps(x)
        {taken}
"""


def test_a_generator_raises_where_its_elements_are_taken() -> None:
    taken = "try:\n            return sum(steps)\n        except ValueError:\n            return x"
    source = _STEPS.format(mark="", taken=taken)
    after, result = fixed(source)
    assert after == source
    assert any("is a generator" in (each.declined or "") for each in result.remaining)
    manager = _STEPS.format(mark="@contextlib.contextmanager", taken="with steps:\n            return x")
    assert "_assert_async" in fixed(manager)[0]


def test_a_function_that_calls_only_its_own_is_given_nothing_that_it_calls(tmp_path: Path) -> None:
    installer = """
def required(name):
    from json import loads

    def install():
        return len(loads(name))

    try:
        return install() + loads(name)
    except ValueError:
        return None
"""
    (tmp_path / "installer.py").write_text(installer)
    body = "import installer\ninstaller.required('numpy')\nx = self.part(x)"
    assert _finding(tmp_path, body) == ""
    called = installer.replace("required(name)", "required(name, called)").replace("install() +", "called() +")
    (tmp_path / "installer.py").write_text(called)
    assert "`except ValueError` in required" in _finding(tmp_path, body.replace("'numpy'", "'numpy', self.part"))


def test_what_is_raised_in_its_place_may_be_caught(tmp_path: Path) -> None:
    body = (
        "def translated(x):\n    try:\n        return self.part(x)\n    except ValueError as error:\n"
        "        raise KeyError from error\n"
        "try:\n    x = translated(x)\nexcept KeyError:\n    pass"
    )
    assert "`except KeyError` in Model.forward" in _finding(tmp_path, body)


def test_a_script_that_expects_the_exception_counts(tmp_path: Path) -> None:
    tail = (
        "\n\ndef run(x):\n    model = Model()\n    try:\n        return model(x)\n    except {}:\n        return None\n"
    )
    body = "x = self.part(x)"
    assert "`except ValueError` in run" in _finding(tmp_path, body, tail.format("ValueError"))
    assert _finding(tmp_path, body, tail.format("Exception")) == ""


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("    try:\n        return part(x)\n    except ValueError:\n        return None", "`except ValueError` in run"),
        ("    with quiet:\n        return part(x)", "`with quiet` in run"),
        ("    with Lenient():\n        return part(x)", "`with Lenient` in run"),
    ],
)
def test_a_script_without_torch_that_nobody_imports_counts(tmp_path: Path, text: str, by: str) -> None:
    (tmp_path / "instances.py").write_text(
        "import managers\n\nquiet = managers.made()\n\n\nclass Lenient(managers.Tolerant):\n    pass\n"
    )
    imports = "from guard import Part\nfrom instances import Lenient, quiet\n\n\n"
    (tmp_path / "script.py").write_text(f"{imports}def run(part: Part, x):\n{text}\n")
    assert by in _finding(tmp_path, "x = self.part(x)")


def test_files_that_cannot_catch_anything_are_not_read_for_it(tmp_path: Path) -> None:
    for name, body in (
        ("anything", "try:\n        return 1\n    except Exception:\n        return 2"),
        ("missing", "try:\n        return 1\n    except ImportError as error:\n        return error"),
        ("opened", "with open(name) as file:\n        return file"),
        ("named", "try:\n        return 1\n    except (KeyError, ValueError):\n        return 2"),
        ("left", "with suppress(ValueError):\n        return 1"),
    ):
        (tmp_path / f"{name}.py").write_text(f"def run(name):\n    {body}\n")
    files = sorted(path.name for path in tmp_path.iterdir())
    index = index_of(tmp_path)
    index.has_every_file([], lambda: ((name, (tmp_path / name).read_bytes()) for name in files))
    found = [module.summary.path for module in catching_modules(index, [], [])]
    assert found == ["left.py", "named.py"]


@pytest.mark.parametrize(
    ("body", "tail", "by"),
    [
        ("x = managers.attempt(self.part, x)", "", "`except ValueError` in attempt (managers.py)"),
        ("x = managers.attempt(lambda: self.part(x))", "", "`except ValueError` in attempt (managers.py)"),
        ("x = managers.attempted(self.part)(x)", "", "`except ValueError` in attempted.inner (managers.py)"),
        (
            "x = run(self.part, x)",
            "@managers.attempted\ndef run(part: Part, x):\n    return part(x)",
            "attempted.inner",
        ),
        ("x = run(self.part, x)", "@managers.tolerant()\ndef run(part: Part, x):\n    return part(x)", "tolerant()"),
    ],
)
def test_what_is_given_or_decorated_may_be_caught(tmp_path: Path, body: str, tail: str, by: str) -> None:
    assert by in _finding(tmp_path, body, f"\n\n{tail}\n" if tail else "")


_OUTER = """
import contextlib

from torch import nn

import model


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model.Model()

    def forward(self, *args):
        with contextlib.suppress(Exception):
            return self.inner(*args)
"""


def _first_example(code: str) -> str:
    rule = next(each for each in all_rules() if each.code == code)
    example = next(each for each in rule.examples if isinstance(each, Example))
    return embedded(example.before, example.setup)


_CODES = [
    rule.code
    for rule in all_rules()
    if rule.contract.may_raise and rule.safety in (Safety.SAFE, Safety.UNSAFE) and rule.examples
]


@pytest.mark.parametrize("code", _CODES)
def test_no_rule_takes_an_exception_away_from_a_caller_that_catches_it(tmp_path: Path, code: str) -> None:
    source = _first_example(code)
    if "class Model(" not in source:
        pytest.skip("the example is no module")
    alone, _ = fixed_among(tmp_path, source, {}, select=(code,), unsafe_fixes=True)
    assert alone != source
    after, reasons = fixed_among(tmp_path, source, {"outer.py": _OUTER}, select=(code,), unsafe_fixes=True)
    assert after == source
    assert any("`with contextlib.suppress" in reason for reason in reasons)


@pytest.mark.parametrize("around", ["try:", "with contextlib.suppress(ValueError):"])
def test_a_select_under_a_statement_that_catches_is_left_alone(tmp_path: Path, around: str) -> None:
    handler = "\n        except ValueError:\n            pass" if around == "try:" else ""
    source = (
        "import contextlib\nimport torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
        f"    def forward(self, x: torch.Tensor):\n        {around}\n            if x.sum() > 0:\n"
        f"                x = x + x.mean(){handler}\n        return x\n"
    )
    after, reasons = fixed_among(tmp_path, source, {})
    assert after == source
    assert any("in compiled code is not" in reason for reason in reasons)


@_SINCE_3_11
def test_what_is_bound_under_a_group_of_exceptions_is_no_longer_what_it_was() -> None:
    body = (
        "y = torch.zeros_like(x)\ntry:\n    y = given\nexcept* ValueError:\n    pass\ny[x > 0] = x[x > 0] * 2\nreturn y"
    )
    source = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
    source += "    def forward(self, x: torch.Tensor, given):\n        ...\n"
    assert "isinstance(y, torch.Tensor)" in fixed(embedded(body, source))[0]


def test_that_a_package_exports_a_function_does_not_make_anybody_catch_its_exceptions(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from package.guard import checked\n")
    (package / "guard.py").write_text(_GUARD)
    found = api.check([tmp_path], Settings(tmp_path), cache=False)
    (guard,) = (each for each in found.findings if each.code == "GM301")
    assert guard.declined is None


def test_that_a_package_exports_a_function_does_not_make_a_script_of_it(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from package.numbers import scaled\nfrom package.script import small\n")
    text = "import torch\n\n\ndef scaled(x: torch.Tensor):\n    scale = x.max().item()\n    return x / scale\n"
    (package / "numbers.py").write_text(text)
    script = "import torch\n\n\ndef small(x: torch.Tensor):\n    return x + 1\n\n\nscripted = torch.jit.script(small)\n"
    (package / "script.py").write_text(script)
    found = api.check([tmp_path], Settings(tmp_path), cache=False)
    (number,) = (each for each in found.findings if each.code == "GM401")
    assert number.declined is None


def test_a_library_may_catch_what_a_method_raises_that_it_calls(tmp_path: Path) -> None:
    tail = """

from pydantic import BaseModel, field_validator


class Inputs(BaseModel):
    x: object

    @field_validator("x")
    @classmethod
    def positive(cls, x):
        return checked(x)
"""
    assert "may be caught: the library that calls Inputs.positive" in _finding(tmp_path, "Inputs(x=x)", tail)


def test_a_library_calls_nothing_of_a_class_that_no_traced_code_constructs(tmp_path: Path) -> None:
    tail = """

from ignite.metrics import Metric, reinit__is_reduced


class Handler(Metric):
    @reinit__is_reduced
    def update(self, x):
        return checked(x)
"""
    assert "may be caught" not in _finding(tmp_path, "checked(x)", tail)
