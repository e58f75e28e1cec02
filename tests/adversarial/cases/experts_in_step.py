"""Loops over experts and their masks in step (GM502)."""

from typing import Any

from tests.adversarial.case import Group

steps = Group("experts in step")
_MOE = """
import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.lin(x))

{top}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([Expert() for _ in range(3)])
        self.gate = nn.Linear(3, 3)
{init}
    def forward(self, x{args}):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2, dim=-1)
        result = torch.zeros_like(x)
{body}
        return result{ret}
"""
_ROWS = "torch.randn(5, 3)"
_MASKS = "masks = (chosen.unsqueeze(-1) == torch.arange(3)).permute(2, 0, 1)\n"


def _i(text: str) -> str:
    return "\n".join("        " + line for line in text.strip("\n").split("\n")) if text else ""


def _s(
    name: str,
    around: str,
    inner: str = "row, slot = torch.where(mask)\nresult[row] += weights[row, slot, None] * expert(x[row])",
    before: str = _MASKS,
    init: str = "",
    top: str = "",
    args: str = "",
    ret: str = "",
    after: str = "",
    **kw: Any,
) -> None:
    body = (
        before
        + f"{around}\n"
        + "\n".join("    " + line for line in inner.split("\n"))
        + ("\n" + after if after else "")
    )
    kw = {"inputs": (_ROWS, "torch.zeros(2, 3)", "torch.randn(1, 3)", "torch.randn(0, 3)"), "varied": False, **kw}
    steps.whole(name, _MOE.format(top=top, init=_i(init), args=args, body=_i(body), ret=ret), **kw)


_Z = "for mask, expert in zip(masks, self.experts):"
_s("plain", _Z)
_s("fewer masks", _Z, before=_MASKS + "masks = masks[:2]\n")
_s("more masks", _Z, before="masks = (chosen.unsqueeze(-1) == torch.arange(5)).permute(2, 0, 1)\n")
_s("strict", "for mask, expert in zip(masks, self.experts, strict=True):", before=_MASKS + "masks = masks[:2]\n")
_s("a list of masks", _Z, before="masks = [chosen == i for i in range(3)]\n")
_s("a generator of masks", _Z, before="masks = (chosen == i for i in range(3))\n")
_s("masks in a tuple", _Z, before="masks = (chosen == 0, chosen == 1, chosen < 3)\n")
_s("masks that overlap", _Z, before="masks = torch.stack([chosen >= i for i in range(3)])\n")
_s("one expert twice", _Z, init="self.experts[2] = self.experts[0]")
_s(
    "None among the experts",
    _Z,
    init="self.experts = nn.ModuleList([Expert(), None, Expert()])",
    inner="if expert is None:\n    continue\nrow, slot = torch.where(mask)\nresult[row] += weights[row, slot, None] * expert(x[row])",
)
_s("experts of two classes", _Z, init="self.experts[1] = nn.Linear(3, 3)")
_s(
    "experts of a subclass",
    _Z,
    top="class Loud(Expert):\n    def forward(self, x):\n        self.n = x.shape[0]\n        return x * 2\n",
    init="self.experts[1] = Loud()",
)
_s("reversed", "for mask, expert in zip(masks, reversed(self.experts)):")
_s("experts first", "for expert, mask in zip(self.experts, masks):")
_s("three in step", "for mask, expert, w in zip(masks, self.experts, weights.t()):")
_s(
    "numbers in step",
    "for mask, expert, w in zip(masks, self.experts, [1.0, 2.0, 3.0]):",
    inner="row, slot = torch.where(mask)\nresult[row] += w * expert(x[row])",
)
_s(
    "the masks change in the loop",
    _Z,
    inner="row, slot = torch.where(mask)\nmasks[2] = False\nresult[row] += weights[row, slot, None] * expert(x[row])",
)
_s(
    "the rows change in the loop",
    _Z,
    inner="row, slot = torch.where(mask)\nx[row] += 1\nresult[row] += weights[row, slot, None] * expert(x[row])",
)
_s("the loop's names are read below", _Z, ret=", mask, row")
_s("the loop's expert is read below", _Z, ret=", expert(x)")
_s(
    "the result goes into itself",
    _Z,
    inner="row, slot = torch.where(mask)\nresult[row] += expert(result[row]) + weights[row, slot, None]",
)
_s("the result is a view", _Z, before=_MASKS + "other = result.view(-1)\n", ret=", other")
_s("result is x", _Z, before=_MASKS + "result = x\n")
_s(
    "break at the first without rows",
    _Z,
    inner="row, slot = torch.where(mask)\nif row.numel() == 0:\n    break\nresult[row] += expert(x[row])",
)
_s("else of the loop", _Z, after="else:\n    result = result + 1")
_s(
    "counts experts",
    _Z,
    before=_MASKS + "count = 0\n",
    inner="row, slot = torch.where(mask)\ncount += 1\nresult[row] += count * expert(x[row])",
    ret=", count",
)
_s(
    "a list of sizes",
    _Z,
    before=_MASKS + "sizes = []\n",
    inner="row, slot = torch.where(mask)\nsizes.append(row.shape[0])\nresult[row] += expert(x[row])",
    ret=", sizes",
)
_s(
    "enumerate from one",
    "for i, (mask, expert) in enumerate(zip(masks, self.experts), 1):",
    inner="row, slot = torch.where(mask)\nresult[row] += i * expert(x[row])",
)
_s("nested", "for (mask, expert) in list(zip(masks, self.experts)):")
_s("a slice of the experts", "for mask, expert in zip(masks, self.experts[1:]):")
_s(
    "masks by keyword None",
    _Z,
    args=", masks=None",
    before="if masks is None:\n    masks = (chosen.unsqueeze(-1) == torch.arange(3)).permute(2, 0, 1)\n",
    inputs=(
        _ROWS,
        f"{_ROWS}, torch.ones(3, 5, 2, dtype=torch.bool)",
        f"{_ROWS}, torch.ones(2, 5, 2)",
        f"{_ROWS}, [torch.ones(5, 2)]",
    ),
)
_s("masks of integers", _Z, before=_MASKS + "masks = masks.long()\n")
_s(
    "a mask of rows alone",
    _Z,
    before=_MASKS + "masks = masks.any(-1)\n",
    inner="(row,) = torch.where(mask)\nresult[row] += expert(x[row])",
)
_s("boolean rows", _Z, before=_MASKS + "masks = masks.any(-1)\n", inner="result[mask] += expert(x[mask])")
_s(
    "boolean rows that overlap",
    _Z,
    before=_MASKS + "masks = masks.any(-1)\n",
    inner="result[mask] = expert(x[mask]) + result[mask]",
)
_s("x needs no gradient", _Z, before="x = x.detach()\n" + _MASKS)
_s("frozen experts", _Z, init="self.experts.requires_grad_(False)")
_s("frozen gate and one expert", _Z, init="self.gate.requires_grad_(False)\nself.experts[1].requires_grad_(False)")
_s("half autocast", _Z, before="with torch.autocast('cpu', dtype=torch.bfloat16):\n    pass\n" + _MASKS)
_s("dropout in experts", _Z, init="for e in self.experts:\n    e.lin = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))")
_s(
    "batch norm in experts",
    _Z,
    init="for e in self.experts:\n    e.lin = nn.BatchNorm1d(3)",
    inner="row, slot = torch.where(mask)\nif row.shape[0] < 2:\n    continue\nresult[row] += expert(x[row])",
)
_s(
    "the expert gets a name",
    _Z,
    inner="row, slot = torch.where(mask)\nself.last = expert\nresult[row] += expert(x[row])",
)
_s(
    "no_grad in the loop",
    _Z,
    inner="row, slot = torch.where(mask)\nwith torch.no_grad():\n    y = expert(x[row])\nresult[row] += y * weights[row, slot, None]",
)
_s(
    "detached rows",
    _Z,
    inner="row, slot = torch.where(mask)\nresult[row] += expert(x[row].detach()) * weights[row, slot, None].detach()",
)
_s(
    "weights in place",
    _Z,
    inner="row, slot = torch.where(mask)\nresult.index_add_(0, row, expert(x[row]).mul_(weights[row, slot, None]))",
)
_s(
    "a scatter",
    _Z,
    before=_MASKS + "masks = masks.any(-1)\n",
    inner="idx = mask.nonzero().squeeze(-1)\nresult = result.index_add(0, idx, expert(x[idx]))",
)
_s(
    "masked_scatter",
    _Z,
    before=_MASKS + "masks = masks.any(-1)\n",
    inner="result = result.masked_scatter(mask[:, None], expert(x[mask]))",
)
