"""Parts that may return what they got, and what their callers do with the result: marks on tensors, hooks, tables."""

from tests.adversarial.case import TWO, Group

_PARTS = """
import torch
from torch import nn


class Part(nn.Module):
    def forward(self, y: torch.Tensor):
        if y.sum() > 0:
            y = y * 2
        return y


class Early(nn.Module):
    def forward(self, y: torch.Tensor):
        if y.sum() > 0:
            return y * 2
        return y


TABLE = {"early": Early}
"""

parts = Group("results of parts")
for _name, _made, _body in (
    ("written", "self.part = Part()", "z = self.part(y)\nz += 1"),
    ("left alone", "self.part = Part()", "z = self.part(y)"),
    ("in a sequence", "self.part = nn.Sequential(Part(), nn.ReLU(inplace=True))", "z = self.part(y)"),
    ("of a table", "self.part = TABLE['early']()", "z = self.part(y)\nz[0] = 7.0"),
    ("mapped", "self.part = Early()", "z, = map(self.part, [y])\nz.mul_(2)"),
    ("hooked", "self.part = Part()\nself.part.register_forward_hook(lambda m, i, o: o.add_(1))", "z = self.part(y)"),
):
    parts.add(
        _name,
        f"y = x.tanh()\n{_body}\nreturn y + z",
        init=_made,
        top="from parts import Early, Part, TABLE",
        files={"parts.py": _PARTS},
        inputs=TWO,
        training=(False,),
        varied=False,
    )

marked = Group("marked tensors")
for _name, _body in {
    "before": "y = x * 1\ny.tag = 3\nif x.sum() > 0:\n    y = y * 2\nreturn y * getattr(y, 'tag', 1)",
    "masked": "y = x * 1\ny.tag = 3\nm = y < 0\nif m.any():\n    y = y.masked_fill(m, 0.0)\nreturn y * hasattr(y, 'tag')",
    "a parameter": "w = self.w\nif x.sum() > 0:\n    w = w * 2\nreturn x * w * (3 if isinstance(w, nn.Parameter) else 1)",
    "kept": "y = x.detach() * 1\nif x.sum() > 0:\n    self.kept = y\ny.add_(1)\nreturn self.kept * x",
    "without gradients": "m = x < -3\nwith torch.no_grad():\n    if m.any():\n        x = x.masked_fill(m, 0.0)\nreturn x",
}.items():
    marked.add(
        _name,
        _body,
        init="self.w = nn.Parameter(torch.ones(3))\nself.kept = torch.zeros(2, 3)",
        inputs=TWO,
        training=(False,),
        varied=False,
    )
