"""Packed sequences by lengths of odd kinds, CTC losses by lists and for each sequence, and derivatives ahead.

`evaluation/benchmarks/adversarial.py --only 'lengths of packed|kinds of CTC|derivatives ahead' --opaque` compiles them.
"""

import sys
from typing import Any

from tests.adversarial.case import TWO, Group

packed = Group("lengths of packed sequences")
losses = Group("kinds of CTC losses")
ahead = Group("derivatives ahead")
groups = Group("groups of exceptions")
_X = "torch.arange(60.0).view(3, 5, 4).sin()"
_Y = "torch.arange(60.0).view(6, 2, 5).sin()"
_PACK = """\
packed = nn.utils.rnn.pack_padded_sequence(x, {}, batch_first=True, enforce_sorted=False)
out, (h, c) = self.lstm(packed)
out, n = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
return out, h, c, n
"""


def _p(name: str, read: str, lengths: str = "torch.tensor([5, 3, 2])", before: str = "", **kw: Any) -> None:
    inputs = [f"({_X}, {lengths})", f"({_X} * 2, {lengths})"]
    kw = {"init": "self.lstm = nn.LSTM(4, 3, batch_first=True)", "varied": False, **kw}
    packed.add(name, before + _PACK.format(read), args="x: torch.Tensor, lengths: torch.Tensor", inputs=inputs, **kw)


_p("a list of tensors", "list(lengths)")
_p("a list of tensors with a name", "numbers", before="numbers = list(lengths)\n")
_p("an array of another dtype", "lengths.cpu().numpy().astype(int)", "torch.tensor([5, 3.5, 2])")
_p("fewer than rows", "lengths.tolist()", "torch.tensor([5, 3])")
_p("fewer than rows, states alone", "lengths.cpu()", "torch.tensor([5, 3])")
_p("fractions", "lengths.tolist()", "torch.tensor([5.0, 3.7, 2.2])")
_p("computed and read", "(lengths - 1).tolist()")
_p("of a mask", "(x[..., 0] > -0.5).sum(1).clamp(min=1).tolist()")
_p("written after they were read", "numbers", before="numbers = lengths.tolist()\nlengths.add_(-1)\n")
_p("zero", "lengths.tolist()", "torch.tensor([5, 0, 2])")
_p("too long", "lengths.cpu()", "torch.tensor([9, 3, 2])")


def _c(name: str, body: str, n: str = "torch.tensor([6, 5])", **kw: Any) -> None:
    targets = "torch.tensor([[1, 2, 3], [2, 2, 4]])"
    inputs = [f"({_Y}, {targets}, {n})", f"({_Y} * 3, {targets}, {n})"]
    kw = {"init": "self.loss = nn.CTCLoss()", "varied": False, "args": "x: torch.Tensor, t: torch.Tensor, n", **kw}
    losses.add(name, "y = x.log_softmax(-1)\nm = (t > 0).sum(1)\n" + body, inputs=inputs, **kw)


_c("a list", "loss = self.loss(y, t, n, m)\nreturn loss * 2", "[6, 5]")
_c("a list for a function", "loss = F.ctc_loss(y, t, n, m)\nreturn loss * 2", "[6, 5]")
_c("a list that is written there", "loss = F.ctc_loss(y, t, [6, 5], m)\nreturn loss * 2")
_c("each sequence", "loss = F.ctc_loss(y, t, n, m, reduction='none')\nreturn (loss / m).mean()")
_c("each sequence, layer", "loss = self.loss(y, t, n, m)\nreturn loss / m", init="self.loss = nn.CTCLoss(0, 'none')")
_c("each or not", "return F.ctc_loss(y, t, n, m, reduction=self.kind)", init="self.kind = 'none'")
_c(
    "another reduction later",
    "return self.loss(y, t, n, m)",
    init="self.loss = nn.CTCLoss(reduction='none')",
    outside=(
        "import model\n\n\ndef make():\n    made = model.Model()\n    made.loss.reduction = 'sum'\n    return made\n"
    ),
)
_c("the function of torch", "return torch.ctc_loss(y, t, n, m, 0, 0, False)")

_AHEAD = """\
import torch
import torch.autograd.forward_ad as forward
from torch import nn

import model


class Outer(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    @torch.compiler.disable(recursive=False)
    def forward(self, x):
        {}


def make():
    return Outer(model.Model())
"""
_MODES = {
    "in forward mode": (
        "with forward.dual_level():\n"
        "            return tuple(forward.unpack_dual(self.inner(forward.make_dual(x.detach(), torch.ones_like(x)))))"
    ),
    "under a transform": "return torch.func.grad(lambda x: self.inner(x).sum())(x.detach())",
}
_BODIES = {
    "experts": (
        "chosen, out = x.argmax(-1), torch.zeros_like(x)\nfor i, expert in enumerate(self.experts):\n"
        "    rows = torch.where(chosen == i)[0]\n    if rows.numel() > 0:\n"
        "        out.index_add_(0, rows, expert(x[rows]))\nreturn out"
    ),
    "a loop": "while (x.abs() > 1).any():\n    x = x / 2\nreturn x",
    "a number": "return x / (x.abs().max().item() + 1)",
    "a size": "return x[:, : int(x[0, 0].abs()) + 1] * 2",
}
for _name, _body in _BODIES.items():
    for _mode, _forward in _MODES.items():
        ahead.add(
            f"{_name} {_mode}",
            _body,
            init="self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))",
            inputs=TWO,
            outside=_AHEAD.format(_forward),
            varied=False,
        )


def _g(name: str, body: str, **kw: Any) -> None:
    groups.add(name, body, varied=False, **kw)


_PART = """
class Part(nn.Module):
    def forward(self, x):
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x * 2
"""
_RUN = """
def run(part, x):
    try:
        return part(x)
    except* ValueError:
        x = torch.zeros_like(x)
    return x
"""
if sys.version_info >= (3, 11):
    _g("caught", "return run(self.part, x)", top=_PART + _RUN, init="self.part = Part()")
    _g(
        "caught elsewhere",
        "return run(self.part, x)",
        top=f"from other import run\n{_PART}",
        files={"other.py": f"import torch\n{_RUN}"},
        init="self.part = Part()",
    )
    for _name, _first, _then in (
        ("another tensor", "torch.zeros_like(x)", "y[x > 0] = x[x > 0] * 2"),
        ("another dtype", "x > 0", "if y.any():\n    x = x * 2"),
    ):
        _bound = f"y = {_first}\ntry:\n    y = self.kept\nexcept* ValueError:\n    pass\n{_then}\nreturn y + x"
        _g(_name, _bound, init="self.register_buffer('kept', torch.zeros(2, 3))")
