"""Python numbers that grow where a tensor says so, and what is done with them afterwards."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask=None, more=False, rounds: int = 2):
        buckets = None
        for part in (x, -x):
            buckets = torch.argmax(part, dim=-1) if buckets is None else buckets + torch.argmax(part, dim=-1)
        if isinstance(rounds, int):
            count = x.shape[-1]
        else:
            count = 1
        if mask is not None and (mask.sum().item() < mask.shape[0] * mask.shape[-1]):
            # one more, for padding
            count = count + 1
            # all of it
            kept = mask.to(torch.bool).expand(buckets.shape)
            buckets = torch.where(kept, buckets, torch.tensor(count - 1, dtype=torch.long, device=buckets.device))
        elif more:
            count = count + 1
        offsets = torch.arange(rounds, device=x.device)
        offsets = (offsets * count).view(-1, 1, 1)
        return buckets + offsets
"""
_CALLS = [
    "torch.randn(2, 3, 4)",
    "torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.long)",
    "torch.randn(2, 3, 4), torch.tensor([[0, 1, 1], [1, 1, 1]])",
    "torch.randn(2, 3, 4), torch.tensor([[0, 1, 1], [1, 1, 1]]).bool()",
    "torch.randn(2, 3, 4), torch.tensor([[0, 0.5, 1], [1, 1, 1]])",
]


def test_the_tensor_decides_by_how_much_a_number_grows() -> None:
    after, _ = fixed(_MODEL)
    assert "count = count_before + condition" in after
    behaves(_MODEL, after, _CALLS, scenarios=(Scenario(), Scenario(training=True, gradients="inner")))
    compiles(after, _CALLS)
    assert not [finding for finding in checked(after).findings if finding.code == "GM110"]


def test_a_flag_that_is_counted_on_is_no_number() -> None:
    source = _MODEL.replace("count = x.shape[-1]", "count = more")
    after, _ = fixed(source)
    assert "type(count) is int" in after
    calls = [f"dict(zip(('x', 'mask', 'more'), ({call}, {more})))" for call in _CALLS[1:4] for more in (True, False)]
    behaves(source, after, calls, scenarios=(Scenario(),))
    compiles(after, calls, strict=False)


def test_a_call_that_takes_another_branch_is_as_it_was() -> None:
    after, _ = fixed(_MODEL)
    calls = [f"dict(zip(('x', 'mask', 'more'), ({call}, True)))" for call in _CALLS[1:4]]
    behaves(_MODEL, after, calls, scenarios=(Scenario(),))
    compiles(after, calls, strict=False)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("offsets * count", "offsets / count", "may need a Python number"),
        ("return buckets + offsets", "return buckets + offsets, count", "may need a Python number"),
        ("offsets * count", "rounds * count", "may need a Python number"),
        ("offsets * count", "offsets[0] * count", "may need a Python number"),
        ("offsets = torch.arange", "count = count + 1\n        offsets = torch.arange", "is assigned again below"),
        ("torch.arange(rounds, device=x.device)", "torch.arange(rounds)", "may need a Python number"),
        ("elif more:", "else:", "there is an `else` branch"),
        ("elif more:", "elif x.dim() > 2:", "there is an `else` branch"),
        (".expand(buckets.shape)", "", "is not a select"),
        ("torch.tensor(count - 1, dtype=torch.long", "torch.tensor(count - 1.5, dtype=torch.long", "is not a select"),
        ("torch.tensor(count - 1, dtype=torch.long", "torch.tensor(count - 1, dtype=torch.float", "is not a select"),
        ("# all of it", "x.add_(1)", "may have side effects"),
        (
            "offsets = torch.arange",
            "ends = lambda: range(count)\n        offsets = torch.arange",
            "in a nested function",
        ),
        (
            "if mask is not",
            "def places():\n            return range(count)\n\n        if mask is not",
            "in a nested function",
        ),
    ],
)
def test_any_other_use_keeps_the_branch(old: str, new: str, because: str) -> None:
    assert old in _MODEL
    declined(_MODEL.replace(old, new), because=because)


_WRITES = ["buckets[0] = 1", "buckets += 1", "buckets.view(-1).add_(1)"]


@pytest.mark.parametrize("write", _WRITES)
def test_a_write_that_another_name_would_show_keeps_the_branch(write: str) -> None:
    source = _MODEL.replace("if isinstance(rounds", "same = buckets\n        if isinstance(rounds")
    source = source.replace("return buckets", f"{write}\n        return same + buckets")
    declined(source, because="may write in place to the tensor")


@pytest.mark.parametrize("write", _WRITES)
def test_what_only_one_name_leads_to_may_be_written(write: str) -> None:
    source = _MODEL.replace("return buckets", f"{write}\n        return buckets")
    after, _ = fixed(source)
    assert "count = count_before + condition" in after
    behaves(source, after, _CALLS, scenarios=(Scenario(),))
    compiles(after, _CALLS[1:3])


_KEPT = "kept = mask.to(torch.bool).expand(buckets.shape)"


@pytest.mark.parametrize(
    ("kept", "mask", "asked"),
    [
        (_KEPT, "torch.ones(3, 2)", "for m, n in zip(mask.shape[::-1], buckets.shape[::-1]))"),
        (_KEPT, "torch.ones(1, 1, 2, 3)", "mask.dim() <= buckets.dim()"),
        ("kept = mask.expand_as(buckets)", "torch.ones(2, 3)", "mask.dtype == torch.bool"),
        ("kept = mask.bool()[:, None, :].expand(buckets.shape)", "torch.ones(3)", "mask.dim() > 1"),
        ("kept = mask.bool()[:, None, :].expand(buckets.shape)", "torch.ones(2, 3)", "mask[:, None, :].dim() <= "),
        ("kept = mask[:, 0].expand(buckets.shape)", "torch.ones(3, dtype=torch.bool)", "mask.dim() > 1"),
        ("kept = mask[:, 0].expand(buckets.size())", "torch.ones(2, 0, dtype=torch.bool)", "mask.shape[1] > 0"),
    ],
)
def test_what_would_raise_in_the_branch_is_asked_for(kept: str, mask: str, asked: str) -> None:
    source = _MODEL.replace(_KEPT, kept)
    after, _ = fixed(source)
    assert asked in after
    calls = [f"torch.randn(2, 3, 4), {mask}"]
    behaves(source, after, calls, scenarios=(Scenario(),))
    compiles(after, calls, strict=False)


@pytest.mark.parametrize(
    ("kept", "because"),
    [
        ("kept = mask.view(2, 3).bool().expand(buckets.shape)", "`mask.view(2, 3)` may raise for some arguments"),
        ("part = mask + 1\n            kept = part.bool().expand(buckets.shape)", "may raise for some shapes"),
        ("kept = (mask + more).expand(buckets.shape)", "cannot infer the"),
    ],
)
def test_what_may_raise_in_the_branch_and_no_header_can_ask_for_keeps_it(kept: str, because: str) -> None:
    declined(_MODEL.replace(_KEPT, kept), because=because)


_GROWS = ["    count = count + 1"]


@pytest.mark.parametrize(
    ("head", "body", "because"),
    [
        (["if more:", "    pass", "elif mask.sum().item() < 3:"], _GROWS, "the branch is an `elif`"),
        (["if mask.sum().item() < 3:"], [*_GROWS, "    count = count + 2"], "`count` is assigned twice"),
        (["if mask.sum().item() < 3:"], [*_GROWS, "    mask = mask * 2"], "`mask` is also read by the test"),
        (["if mask > 3:"], _GROWS, "may have more than one element"),
    ],
)
def test_a_branch_of_another_form_is_left_alone(head: list[str], body: list[str], because: str) -> None:
    lines = [
        "def forward(self, mask: torch.Tensor, count: int, more: bool):",
        *(f"    {each}" for each in (*head, *body)),
    ]
    text = "\n".join(f"    {line}" for line in (*lines, "    return torch.arange(4) + count"))
    declined(f"import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n{text}\n", because, select=("GM110",))
