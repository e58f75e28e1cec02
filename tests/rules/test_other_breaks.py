"""What removes no break is not called a fix, and no compile path contradicts the author's own test."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from graphmend_codemod.core.findings import Edit, Finding, Replacement, Safety, Span
from graphmend_codemod.engine.other_breaks import Judged, OtherBreak, without_idle_fixes
from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed, noop
from tests.tools.observe import Scenario

_MODEL = """
import logging
import random

import torch
from torch import nn

from elsewhere import is_torchdynamo_compiling, step_is_tracing

logger = logging.getLogger(__name__)
torch_is_compiling = getattr(torch.compiler, "is_compiling", None)


def is_compiling() -> bool:
    return bool(torch_is_compiling()) if torch_is_compiling is not None else False


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.debug = True

    def forward(self, x: torch.Tensor, other=None):
{body}
        return x * 2
"""
_ONE = (Scenario(gradients="off"),)


def model(body: str) -> str:
    return _MODEL.format(body="\n".join(f"        {line}" for line in body.strip("\n").splitlines()))


@pytest.mark.parametrize(
    ("body", "around"),
    [
        ("if x.sum() > 3:\n    print('large')\n    x = other(x)", "`x.sum() > 3`"),
        ("if x.sum() > 3:\n    if self.debug:\n        logger.info('large')\n    x = other(x)", "`x.sum() > 3`"),
        ("if x.sum() > 3:\n    pass\nelse:\n    print('small')\n    x = other(x)", "`x.sum() > 3`"),
        ("if random.random() > 3:\n    print('now')", "`random.random() > 3`"),
        (
            "if other is None and x.max().item() > 3:\n    print('now')\n    x = other(x)",
            "`other is None and x.max().item() > 3",
        ),
        ("if x.sum() > 3:\n    if (x < 0).any():\n        raise ValueError('low')\n    x = other(x)", "`x.sum() > 3`"),
    ],
)
def test_a_break_below_one_that_stays_is_not_mended(body: str, around: str) -> None:
    finding = declined(model(body), because="breaks the graph too; fix that first")
    assert around in (finding.declined or "")


@pytest.mark.parametrize(
    "body",
    [
        "if self.debug:\n    print('now')",
        "if x.shape[0] > 3:\n    print('now')",
        "if self.total(x) > 3:\n    print('may be no tensor')",
        "if not torch.compiler.is_compiling() or x.shape[0] > 3:\n    logger.info('now')",
    ],
)
def test_a_test_that_does_not_break_for_certain_keeps_nothing_from_being_mended(body: str) -> None:
    assert [each.code for each in checked(model(body)).findings if each.edit is not None] == ["GM201"]


_LOOP = "for _ in tqdm(range(3)):\n    {}\n    x = x + 1"


def in_loop(body: str) -> str:
    return model(_LOOP.format(body)).replace("import random\n", "import random\n\nfrom tqdm import tqdm\n")


@pytest.mark.parametrize(
    ("body", "breaks"),
    [
        ("x.sum().backward()", "`x.sum().backward()` in the loop"),
        ("if x.sum() > 3:\n        x = other(x)", "`x.sum() > 3` in the loop"),
        ("with torch.enable_grad():\n        x.sum().backward()", "`x.sum().backward()` in the loop"),
        ("for _ in range(2):\n        x.sum().backward()", "`x.sum().backward()` in the loop"),
    ],
)
def test_a_loop_in_which_the_graph_breaks_is_not_mended_at_its_head(body: str, breaks: str) -> None:
    assert breaks in (declined(in_loop(body), because="breaks the graph too; fix that first").declined or "")


@pytest.mark.parametrize(
    "body",
    [
        "x = x * 2",
        "if self.debug:\n        n = x.max().item()",
        "n = x.max().item() if self.debug else 0",
        "def later():\n        return x.max().item()",
        "if (x < 0).any():\n        raise ValueError('low')",
    ],
)
def test_a_loop_in_which_nothing_is_left_that_breaks_for_certain_is_mended(body: str) -> None:
    assert "_tqdm_while_tracing" in fixed(in_loop(body))[0]


_LEFT = "for _ in range(3):\n    x = x + 1\n    if x.sum() > 9:\n        x = other(x)"


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (f"print('here')\n{_LEFT}", "in a loop below it"),
        (f"{_LEFT}\nprint('here')", "in a loop above it"),
        (f"if self.debug:\n    print('here')\nx = x * 2\n{_LEFT}", "in a loop below it"),
        ("print('here')\nwith torch.no_grad():\n    " + _LEFT.replace("\n", "\n    "), "in a loop below it"),
        ("print('here')\nwhile x.sum() < 9:\n    x = other(x)", "`x.sum() < 9` in a loop below it"),
        ("print('here')\nfor _ in range(3):\n    x.sum().backward()", "in a loop below it"),
    ],
)
def test_code_beside_a_loop_in_which_the_graph_breaks_stays(body: str, where: str) -> None:
    found = [each for each in checked(model(body)).findings if each.code == "GM201"]
    assert [each.edit for each in found] == [None]
    assert where in (found[0].declined or "")


@pytest.mark.parametrize(
    "body",
    [
        f"if self.debug:\n    print('here')\n    return x\n{_LEFT}",
        _LEFT.replace("x.sum() > 9", "self.debug and x.sum() > 9") + "\nprint('here')",
        "print('here')\nif self.debug:\n    " + _LEFT.replace("\n", "\n    "),
        "print('here')\nfor _ in range(3):\n    if (x < 0).any():\n        raise ValueError('low')",
        "print('here')\nfor _ in range(3):\n    x = x * 2",
    ],
)
def test_code_beside_a_loop_that_may_be_one_graph_is_mended(body: str) -> None:
    assert "GM201" in [each.code for each in checked(model(body)).findings if each.edit is not None]


def test_dynamo_compiles_nothing_of_a_function_in_whose_loop_the_graph_breaks() -> None:
    def forward(x: torch.Tensor, says: bool) -> torch.Tensor:
        x = x.exp() * 2
        if says:
            torch._dynamo.graph_break()
        for _ in range(3):
            x = x + 1
            if x.sum() > 99:
                x = x * 2
        return x

    for says in (True, False):
        torch._dynamo.reset()
        counter = CompileCounter()
        torch.compile(forward, backend=counter)(torch.ones(2), says)
        assert bool(counter.frame_count) is says


@pytest.mark.parametrize(
    ("test", "written"),
    [
        ("torch.isnan(x).any()", "if not torch.compiler.is_compiling() and torch.isnan(x).any():"),
        ("self.debug and torch.isnan(x).any()", "is_compiling() and self.debug and torch.isnan(x).any():"),
        ("(self.debug) and (torch.isnan(x).any())", "and (self.debug) and (torch.isnan(x).any()):"),
        ("(self.debug and torch.isnan(x).any())", "and (self.debug and torch.isnan(x).any()):"),
        ("(\n    self.debug\n    and torch.isnan(x).any()\n)", "and (\n            self.debug\n            and torch."),
        ("not torch.isfinite(x).all()", "is_compiling() and not torch.isfinite(x).all():"),
        ("x[0] > 9 or torch.isnan(x).any()", "is_compiling() and (x[0] > 9 or torch.isnan(x).any()):"),
    ],
)
def test_a_test_that_decides_about_messages_alone_goes_with_them(test: str, written: str) -> None:
    source = model(f"if {test}:  # why\n    print('nan', x)\n    logger.info('nan')  # there\nx = x + 1")
    source = source.replace("from elsewhere import is_torchdynamo_compiling, step_is_tracing\n", "")
    after, _ = fixed(source)
    assert written in after
    assert after.count("is_compiling()") == source.count("is_compiling()") + 1
    assert after.count("# ") == source.count("# ")
    behaves(source, after, ["torch.ones(3)", "torch.tensor([float('nan')])"], scenarios=_ONE)
    compiles(after, ["torch.ones(3)", "torch.tensor([float('nan')])"], scenarios=_ONE)


@pytest.mark.parametrize(
    "body",
    [
        "if torch.isnan(x.add_(1)).any():\n    print('nan')",
        "if torch.rand(3).sum() > 1:\n    print('often')",
        "if torch.isnan(x).any():\n    print(x.add_(1))",
    ],
)
def test_what_a_test_does_is_not_left_out_with_its_messages(body: str) -> None:
    declined(model(body), because="would not run")


@pytest.mark.parametrize(
    ("outer", "selected", "mended"),
    [(Safety.SAFE, True, True), (Safety.SAFE, False, True), (Safety.UNSAFE, True, False), (None, True, False)],
)
def test_a_break_that_another_fix_takes_away_does_not_count(outer: Safety | None, selected: bool, mended: bool) -> None:
    test = Span(1, 3, 1, 14)
    inner = _finding("GM201", Span(2, 4, 2, 20), Safety.SAFE)
    around = _finding("GM101", Span(1, 0, 2, 20), outer)
    judged = [Judged(inner, (OtherBreak(test, "x.sum() > 3"),)), Judged(around, (), selected)]
    kept = {each.code: each for each in without_idle_fixes(judged, unsafe=False, opaque=False)}
    assert (kept["GM201"].edit is not None) is mended
    assert ("GM101" in kept) is selected


def _finding(code: str, span: Span, safety: Safety | None) -> Finding:
    edit = None if safety is None else Edit((Replacement(span, ("pass",)),))
    return Finding(code, "slug", "m.py", span, "message", safety or Safety.SAFE, edit=edit)


@pytest.mark.parametrize(
    "body",
    [
        "if not is_compiling() and not (x.max() < 3 and x.min() >= 0):\n    raise ValueError('wrong')",
        "if not is_compiling():\n    print(x)",
        "if not is_torchdynamo_compiling() and (x < 0).any():\n    raise ValueError('wrong')",
    ],
)
def test_a_predicate_of_the_project_or_a_package_is_known(body: str) -> None:
    noop(model(body))


@pytest.mark.parametrize(
    "body",
    [
        "if not step_is_tracing() and (x < 0).any():\n    raise ValueError('wrong')",
        "if not step_is_tracing():\n    print(x)",
        "if not self.is_compiling():\n    logger.info('now')",
        "if not other.is_dynamo_compiling():\n    if (x < 0).any():\n        raise ValueError('wrong')",
    ],
)
def test_a_predicate_that_nobody_knows_is_not_contradicted(body: str) -> None:
    declined(model(body), because="may already test whether torch.compile runs")
