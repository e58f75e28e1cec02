"""Log calls that compiled code leaves out: one guard for consecutive calls, in the file's own spelling."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed, fixed_among, transformed

_MODEL = """
import logging
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    debug = True

    def forward(self, x: torch.Tensor, a: bool = True, b=None):
{body}
        return x * 2
"""
_GUARD = "if not torch.compiler.is_compiling():"
_UTILS = """
    import torch

    def is_torchdynamo_compiling():
        return torch.compiler.is_compiling()
    """


def model(body: str) -> str:
    return _MODEL.format(
        body="\n".join(f"        {line}" if line else "" for line in dedent(body).strip().splitlines())
    )


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("if self.debug:", "if self.debug and not torch.compiler.is_compiling():"),
        ("if a or b:", "if (a or b) and not torch.compiler.is_compiling():"),
        ("if (a or b):  # why", "if (a or b) and not torch.compiler.is_compiling():  # why"),
        ("if (a) or (b):", "if ((a) or (b)) and not torch.compiler.is_compiling():"),
        ("if a and b:", "if a and b and not torch.compiler.is_compiling():"),
        ("if (y := b) is not None:", "if (y := b) is not None and not torch.compiler.is_compiling():"),
        ("if b.sum() > 3:", "if not torch.compiler.is_compiling() and b.sum() > 3:"),
        ("if not torch.allclose(b, b * 2):", "if not torch.compiler.is_compiling() and not torch.allclose(b, b * 2):"),
        ("if b.equal(b * 2):", "if not torch.compiler.is_compiling() and b.equal(b * 2):"),
    ],
)
def test_the_test_of_an_if_around_nothing_but_messages_is_extended(header: str, expected: str) -> None:
    body = "{}\n    print('one')\n    # and then\n    print('two')"
    transformed(model(body.format(header)), model(body.format(expected)))


@pytest.mark.parametrize(
    "body",
    [
        "if a:\n    print(1)\n    x = x + 1",
        "if a:\n    print(1)\nelse:\n    x = x + 1",
        "if a:\n    x = x + 1\nelse:\n    print(1)",
        f"if a and {' and '.join(['self.debug'] * 8)}:\n    print(1)",
        "if (\n    a\n    and b\n):\n    print(1)",
    ],
)
def test_an_if_that_decides_about_more_or_has_no_room_gets_a_guard_inside(body: str) -> None:
    transformed(model(body), model(body.replace("    print(1)", f"    {_GUARD}\n        print(1)")))


def test_consecutive_messages_share_one_guard_and_each_counts() -> None:
    before = """
        print("a", x.shape)
        # the mean
        print("b", x.mean())

        logger.info("hello")
        x = x + 1
        warnings.warn("last")
    """
    after = """
        if not torch.compiler.is_compiling():
            print("a", x.shape)
            # the mean
            print("b", x.mean())

            logger.info("hello")
        x = x + 1
        if not torch.compiler.is_compiling():
            warnings.warn("last")
    """
    result = transformed(model(before), model(after))
    assert [finding.code for finding in result.fixes[0].applied] == ["GM201", "GM202", "GM201", "GM201"]
    behaves(model(before), model(after), ["torch.ones(2, 4)"])
    compiles(model(after), ["torch.ones(2, 4)"])


def test_a_message_that_is_to_stay_is_not_drawn_under_the_guard_of_its_neighbour() -> None:
    kept = 'print("b", x.mean())  # graphmend: ignore'
    transformed(model(f'print("a")\n{kept}'), model(f'{_GUARD}\n    print("a")\n{kept}'))
    transformed(
        model('print("a")\nprint("b", x.mean())'),
        model(f'{_GUARD}\n    print("a")\nprint("b", x.mean())'),
        ignore=("GM202",),
    )


def test_a_message_in_a_compile_path_is_left_to_its_author() -> None:
    body = "if torch.compiler.is_compiling():\n    print('compiling')"
    declined(model(body), because="it runs only under torch.compile")


@pytest.mark.parametrize(
    ("imported", "expected"),
    [
        ("from utils import is_torchdynamo_compiling", "is_torchdynamo_compiling()"),
        ("from torch.compiler import is_compiling", "is_compiling()"),
        ("from utils import is_torchdynamo_compiling as ask", "torch.compiler.is_compiling()"),
        ("if True:\n    from utils import is_torchdynamo_compiling", "torch.compiler.is_compiling()"),
        ("from machine import is_compiling", "torch.compiler.is_compiling()"),
    ],
)
def test_a_predicate_that_the_file_imports_is_used_where_it_is_one(
    tmp_path: Path, imported: str, expected: str
) -> None:
    before = model("print(1)").replace("import warnings\n", f"{imported}\nimport warnings\n")
    others = {"utils.py": _UTILS, "machine.py": "def is_compiling():\n    return True\n"}
    after, left = fixed_among(tmp_path, before, others)
    assert f"        if not {expected}:\n            print(1)\n" in after
    assert left == []


@pytest.mark.parametrize(
    ("setting", "kept"), [("guard", []), ("warnings", ["warn", "warning"]), ("once", ["info", "warn", "warning"])]
)
def test_the_setting_says_which_messages_are_sent_once_per_compilation(setting: str, kept: list[str]) -> None:
    before = model("logger.info('i')\nx = x + 1\nlogger.warning('w')\nx = x + 1\nwarnings.warn('v')\nprint(x.shape)")
    after, _ = fixed(before, log_calls=setting)
    helpers = sorted(part.partition("(")[0] for part in after.split("def _")[1:])
    assert helpers == sorted(f"{one}_while_tracing" for one in (kept and ["constant", *kept]))
    assert "            print(x.shape)" in after
    behaves(before, after, ["torch.ones(2, 4)"])
    if setting == "once":
        compiles(after, ["torch.ones(2, 4)"])


_WITHOUT_TORCH = """
    import logging
    from typing import TYPE_CHECKING

    if TYPE_CHECKING:
        import torch

    logger = logging.getLogger(__name__)


    def note(size):
        logger.warning(f"size {size}")
        return size + 1
    """


def test_a_file_that_does_not_import_torch_asks_without_it(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(dedent(_WITHOUT_TORCH))
    model = _MODEL.format(body="        x = x + note(1)").replace(
        "import torch", "import torch\nfrom notes import note", 1
    )
    (tmp_path / "model.py").write_text(model)
    api.fix([tmp_path], Settings(tmp_path), write=True, cache=False)
    after = (tmp_path / "notes.py").read_text()
    assert "if not _is_torch_compiling():\n        logger.warning" in after
    assert not api.check([tmp_path], Settings(tmp_path), cache=False).findings
    program = (
        "import sys, notes; notes.note(1); print('torch' in sys.modules); sys.modules['torch'] = None; notes.note(2)"
    )
    command = [sys.executable, "-S", "-c", program]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("False\n", "size 1\nsize 2\n")
    model = model.replace("from notes import note\n", "")
    compiles(after + model.replace("logger =", "_ ="), ["torch.ones(2)"])
