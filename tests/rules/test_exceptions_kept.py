"""No rule takes an exception from whoever may catch it, and only files that can catch something are read for it."""

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
from tests.rules.catching_callers import GUARD
from tests.tools.fixes import embedded, fixed, fixed_among

_SINCE_3_11 = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python parses `except*` since 3.11")
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
    (package / "guard.py").write_text(GUARD)
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
