"""What readers of the diffs would not have merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from tests.tools.behaviour import behaves
from tests.tools.fixes import embedded, fixed

_MODEL = """
from torch import nn

from told import told


class Model(nn.Module):
    def forward(self, x):
        told("model")
        return x
"""
_WITHOUT_TORCH = """
import warnings


def told(name):
    warnings.warn(f"{name} is old")
"""
_CUT = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, first_output: torch.Tensor, second_output: torch.Tensor, truncate_negative: bool = True):
        if first_output.min() >= 0 and truncate_negative:
            first_output = {first}
            second_output = second_output.relu()
        return first_output, second_output
"""


def test_a_file_that_does_without_torch_imports_none(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(_MODEL)
    (tmp_path / "told.py").write_text(_WITHOUT_TORCH)
    (finding,) = api.check([tmp_path], Settings(tmp_path), cache=False).findings
    assert finding.edit is not None
    assert finding.edit.imports == ("sys",)

    (tmp_path / "told.py").write_text(
        _WITHOUT_TORCH.replace("import warnings", "import warnings\nfrom torch import nn")
    )
    (finding,) = api.check([tmp_path], Settings(tmp_path), cache=False).findings
    assert finding.edit is not None
    assert finding.edit.imports == ("torch",)


@pytest.mark.parametrize(
    ("imports", "because"),
    [
        (
            "from torch import nn\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch",
            "imports `torch` only under `TYPE_CHECKING`",
        ),
        ("try:\n    import torch\nexcept ImportError:\n    pass", "`torch` is imported conditionally"),
    ],
)
def test_torch_is_not_asked_for_where_it_may_not_be_there(tmp_path: Path, imports: str, because: str) -> None:
    (tmp_path / "model.py").write_text(_MODEL)
    (tmp_path / "told.py").write_text(_WITHOUT_TORCH.replace("import warnings", f"import warnings\n{imports}"))
    (finding,) = api.check([tmp_path], Settings(tmp_path), cache=False).findings
    assert because in (finding.declined or "")


@pytest.mark.parametrize("imported", ["import torch", "import torch as th", "from torch import Tensor"])
def test_a_file_with_torch_for_types_alone_still_imports_none(tmp_path: Path, imported: str) -> None:
    (tmp_path / "model.py").write_text(_MODEL)
    types = f"import warnings\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {imported}"
    (tmp_path / "told.py").write_text(_WITHOUT_TORCH.replace("import warnings", types))
    (finding,) = api.check([tmp_path], Settings(tmp_path), cache=False).findings
    assert finding.edit is not None
    assert finding.edit.imports == ("sys",)


def test_a_function_that_names_torch_may_ask_for_more_of_it(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(_MODEL)
    text = _WITHOUT_TORCH.replace(
        "import warnings", "import warnings\ntry:\n    import torch\nexcept ImportError:\n    pass"
    )
    (tmp_path / "told.py").write_text(f"{text}    return torch.ones(2)\n")
    (finding,) = api.check([tmp_path], Settings(tmp_path), cache=False).findings
    assert finding.edit is not None


def test_a_number_where_torch_takes_tensors_alone_is_not_selected() -> None:
    source = _CUT.format(first="torch.maximum(first_output, 0.0)")
    assert "torch.where" not in fixed(source)[0]
    assert "torch.where" in fixed(_CUT.format(first="torch.relu(first_output)"))[0]


def test_conditions_that_are_too_long_for_a_line_get_one_each() -> None:
    source = _CUT.format(first="torch.relu(first_output)")
    after, _ = fixed(source)
    assert "        if (\n            torch.compiler.is_compiling()\n            and truncate_negative\n" in after
    assert max(map(len, after.splitlines())) <= max(map(len, source.splitlines()))
    behaves(source, after, ["torch.ones(2), -torch.ones(3)", "-torch.ones(2), torch.ones(3)"])


_SCRIPTED = """
import logging
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        if torch.jit.is_scripting():
            return x
        y = torch.zeros_like(x)
        mask = x[:, 0] > 0
        ...
        return y
"""


def test_code_for_torchscript_still_compiles_with_it() -> None:
    warned, _ = fixed(embedded('warnings.warn("one")', _SCRIPTED), log_calls="once")
    assert "if not torch.compiler.is_compiling():\n            warnings.warn" in warned
    assert "_while_tracing" not in warned
    copied = "y[mask] = x[mask]"
    assert (
        "torch.compiler.is_compiling()\n            and (\n                False\n"
        in fixed(embedded(copied, _SCRIPTED))[0]
    )
    unscripted = _SCRIPTED.replace("torch.jit.is_scripting()", "x.dim() == 0")
    assert "copy_(" in fixed(embedded(copied, unscripted))[0]


def test_arguments_that_stand_under_the_first_one_stay_there() -> None:
    setup = _SCRIPTED.replace("torch.jit.is_scripting()", "x.dim() == 0")
    statements = """
        warnings.warn('a model of this kind is old and will be removed '
                      'in the next release',
                      UserWarning, stacklevel=2)
        logger.info("a backslash \\
goes on")
        warnings.warn("what follows", UserWarning,
            stacklevel=2)
    """
    assert """
        (_warn_while_tracing if torch.compiler.is_compiling() else warnings.warn)(
            'a model of this kind is old and will be removed '
            'in the next release',
            UserWarning, stacklevel=2)
        (_info_while_tracing if torch.compiler.is_compiling() else logger.info)(
            "a backslash \\
goes on")
        (_warn_while_tracing if torch.compiler.is_compiling() else warnings.warn)(
            "what follows", UserWarning,
            stacklevel=2)
""" in fixed(setup.replace("\n        ...\n    ", statements), log_calls="once")[0]


def test_an_exception_is_not_told_of_while_tracing() -> None:
    setup = _SCRIPTED.replace("torch.jit.is_scripting()", "x.dim() == 0")
    after, _ = fixed(
        embedded('logger.exception("failed")\nlogger.warning("so", exc_info=True)', setup), log_calls="once"
    )
    assert after.count("if not torch.compiler.is_compiling():\n") == 1
    assert "_while_tracing" not in after


def test_a_long_message_of_a_guard_gets_several_lines() -> None:
    source = """
    if (x < 0).any():
        raise ValueError("the value %d of %s is less than nothing and the " % (1, "x")
                         + "model has no layer for it, so give it another {} one and {{}} that is not so much smaller "
                           "than what it was made for".format(2))
    if not (x == {"a b": 1}
            ["a b"]).all():
        raise ValueError
    """
    setup = _SCRIPTED.replace("torch.jit.is_scripting()", "x.dim() == 0")
    assert """
            torch._assert_async(
                ~(x < 0).any(),
                "the value ... of ... is less than nothing and the model has no layer for it, so give it another ... "
                "one and {} that is not so much smaller than what it was made for",
            )
""" in fixed(embedded(source, setup))[0]
