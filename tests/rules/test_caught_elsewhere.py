"""Code whose exceptions a caller may catch, in this file or another, is left to eager mode."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.rules.catching_callers import finding

_SINCE_3_11 = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python parses `except*` since 3.11")


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
    reason = finding(tmp_path, body)
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
    assert finding(tmp_path, body) == ""


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
    assert finding(tmp_path, body) == ""
    called = installer.replace("required(name)", "required(name, called)").replace("install() +", "called() +")
    (tmp_path / "installer.py").write_text(called)
    assert "`except ValueError` in required" in finding(tmp_path, body.replace("'numpy'", "'numpy', self.part"))


def test_what_is_raised_in_its_place_may_be_caught(tmp_path: Path) -> None:
    body = (
        "def translated(x):\n    try:\n        return self.part(x)\n    except ValueError as error:\n"
        "        raise KeyError from error\n"
        "try:\n    x = translated(x)\nexcept KeyError:\n    pass"
    )
    assert "`except KeyError` in Model.forward" in finding(tmp_path, body)


def test_a_script_that_expects_the_exception_counts(tmp_path: Path) -> None:
    tail = (
        "\n\ndef run(x):\n    model = Model()\n    try:\n        return model(x)\n    except {}:\n        return None\n"
    )
    body = "x = self.part(x)"
    assert "`except ValueError` in run" in finding(tmp_path, body, tail.format("ValueError"))
    assert finding(tmp_path, body, tail.format("Exception")) == ""


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
    assert by in finding(tmp_path, "x = self.part(x)")


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
        ("part = self.part\nx = managers.attempt(part, x)", "", "in attempt (managers.py)"),
        ("x = managers.attempt(self.parts[0], x)", "", "in attempt (managers.py)"),
        ("x = managers.attempt(getattr(self, 'part'), x)", "", "in attempt (managers.py)"),
        ("x = managers.attempt(self.inner, x)", "", "in attempt (managers.py)"),
        ("this = self\nx = managers.attempt(this.part, x)", "", "in attempt (managers.py)"),
        ("y = managers.attempted(lambda part: part(1))(self.part)", "", "attempted.inner"),
        ("run = managers.attempted(lambda part: part(1))\ny = run(self.part)", "", "attempted.inner"),
        ("setattr(self, 'other', self.part)\ny = managers.attempt(self.other, 1)", "", "in attempt (managers.py)"),
        (
            "y = Renamed()(1)",
            "class Renamed(nn.Module):\n    def __init__(this):\n        super().__init__()\n"
            "        this.own = Part()\n\n    def forward(this, x):\n        return managers.attempt(this.own, x)",
            "in attempt (managers.py)",
        ),
        (
            "y = Child()(1)",
            "class Child(Part):\n    def forward(self, x):\n        return managers.attempt(super().forward, x)",
            "in attempt (managers.py)",
        ),
        (
            "y = run(self, 1)",
            "def run(model, x):\n    return managers.attempt(model.inner, x)",
            "in attempt (managers.py)",
        ),
    ],
)
def test_what_is_given_or_decorated_may_be_caught(tmp_path: Path, body: str, tail: str, by: str) -> None:
    assert by in finding(tmp_path, body, f"\n\n{tail}\n" if tail else "")


@pytest.mark.parametrize(
    "body",
    [
        "y = managers.attempt(len, [1])\nx = self.part(x)",
        "y = managers.attempt(len, [1])\ny = self.part(x)",
        "y = managers.attempted(torch.relu)(torch.ones(2))\nx = self.part(x)",
        "self.other = nn.Identity()\ny = managers.attempt(self.other, 1)\nx = self.part(x)",
    ],
)
def test_what_stands_beside_is_not_caught(tmp_path: Path, body: str) -> None:
    assert finding(tmp_path, body) == ""


_BY_LIBRARY = "may be caught: the library that calls Inputs.positive"


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
    assert _BY_LIBRARY in finding(tmp_path, "Inputs(x=x)", tail)
    handed = f"{tail}\n\ndef build():\n    return Model(Inputs)\n"
    for body, more in (
        ("self.kind = Inputs\nself.kind(x=x)", tail),
        ("self.kind(x=x)", handed),
        ("KINDS[x.dim()](x=x)", f"{tail}\n\nKINDS = [Inputs]\n"),
        ("make = Inputs\nmake(x=x)", tail),
    ):
        assert _BY_LIBRARY in finding(tmp_path, body, more), body
    assert "may be caught" not in finding(tmp_path, "checked(x)", f"{tail}\n\ndef build(x):\n    return Inputs(x=x)\n")


@pytest.mark.parametrize("mark", ["abstractmethod", "torch.no_grad()"])
def test_what_python_or_torch_marks_no_library_calls(tmp_path: Path, mark: str) -> None:
    tail = f"""

from abc import ABC, abstractmethod
from pydantic import BaseModel


class Inputs(ABC, torch.nn.Module, BaseModel):
    @{mark}
    def positive(self, x):
        return checked(x)


class Positive(Inputs):
    pass
"""
    assert "may be caught" not in finding(tmp_path, "Positive(x=x)", tail)


def test_a_library_calls_nothing_of_a_class_that_no_traced_code_constructs(tmp_path: Path) -> None:
    tail = """

from ignite.metrics import Metric, reinit__is_reduced


class Handler(Metric):
    @reinit__is_reduced
    def update(self, x):
        return checked(x)
"""
    assert "may be caught" not in finding(tmp_path, "checked(x)", tail)
