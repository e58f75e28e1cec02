"""Sums and means of rows that a branch or a step of a loop adds to a total: dtypes, shapes, aliases, later writes."""

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0], [0.5, 2.0, -3.0], [-4.0, -0.5, 1.0]])"
_SOME, _NONE, _ALL = "torch.tensor([True, False, True, False])", "torch.tensor([False] * 4)", "torch.tensor([True] * 4)"
_INPUTS = (f"{_X}, {_SOME}, {_X} * 2 + 1", f"{_X}, {_NONE}, {_X}", f"-{_X}, {_ALL}, {_X}", f"{_X} * nan, {_NONE}, {_X}")
_INIT = """
self.register_buffer("kept", torch.zeros(()))
self.zero = 0
self.infinite = float("inf")
self.w = nn.Parameter(torch.tensor(0.5))
self.loss = nn.L1Loss(reduction="sum")
"""

totals = Group("totals under a test")
for _name, _start, _added in (
    ("of doubles", "torch.zeros(())", "x[m].double().mean()"),
    ("of a given dtype", "torch.zeros(())", "x[m].sum(dtype=torch.float64)"),
    ("of integers", "torch.zeros((), dtype=torch.int32)", "x.int()[m].sum()"),
    ("of bools", "torch.zeros((), dtype=torch.bool)", "(x > 0)[m].sum()"),
    ("of floats in an integer", "torch.zeros((), dtype=torch.int64)", "x.long()[m].float().mean()"),
    ("of half precision", "torch.zeros((), dtype=torch.float16)", "x.half()[m].mean()"),
    ("of complex numbers", "torch.zeros((), dtype=torch.complex64)", "x.to(torch.complex64)[m].mean()"),
    ("counted", "torch.zeros(())", "(x[m] > 0).sum()"),
    ("of dimensions", "torch.zeros(())", "x[m].sum(0)"),
    ("of two elements", "torch.zeros(2)", "x[m].mean()"),
    ("times infinity", "torch.zeros(())", "x[m].sum() * self.infinite"),
    ("divided by zero", "torch.zeros(())", "x[m].square().mean() / self.zero"),
    ("times a parameter", "torch.zeros(())", "self.w * x[m].mean()"),
    ("of roots", "torch.zeros(())", "x[m].sqrt().mean()"),
    ("of quotients", "torch.zeros(())", "(y[m] / x[m]).mean()"),
    ("the root of a mean", "torch.zeros(())", "x[m].square().mean().sqrt()"),
    ("a loss outside of its range", "torch.zeros(())", "F.binary_cross_entropy(x[m], y[m])"),
    ("a loss of a layer", "torch.zeros(())", "self.loss(x[m], y[m])"),
    ("a parameter", "self.w", "x[m].mean()"),
    ("a buffer", "self.kept", "x[m].detach().mean()"),
    ("a view", "y[0, 0]", "x[m].mean()"),
):
    for _form, _sign in (("t = t +", "bound"), ("t +=", "in place")):
        totals.add(
            f"{_name}, {_sign}",
            f"t = {_start}\nu = t\nif m.any():\n    {_form} {_added}\nreturn t * 1, u * 1, y * 1",
            args="x: torch.Tensor, m: torch.Tensor, y: torch.Tensor",
            init=_INIT,
            inputs=_INPUTS,
            varied=False,
        )
for _name, _after in {
    "mask written": "m &= False",
    "mask turned through another name": "k.logical_not_()",
    "mask written by a view": "k.view(2, 2)[0] = True",
    "mask written by out": "torch.logical_not(m, out=m)",
    "rows written": "h.zero_()",
}.items():
    totals.add(
        f"{_name} later",
        f"t = torch.zeros(())\nh, k = x * 1, m\nif m.any():\n    t = t + h[m].square().mean()\n{_after}\nreturn t, m, h",
        args="x: torch.Tensor, m: torch.Tensor, y: torch.Tensor",
        inputs=_INPUTS,
        varied=False,
    )

steps = Group("steps without rows")
for _name, _body in {
    "sums of labels": "t = t + F.cross_entropy(x[m], y[m].clamp(max=2), reduction='sum')",
    "means of labels": "t = t + F.cross_entropy(x[m], y[m].clamp(max=2))",
    "weighted by a list": "t = t + [1.0, 2.0, 3.0][i] * x[m].mean()",
    "of doubles": "t = t + x[m].double().mean()",
    "counted": "t = t + x[m].mean()\nn = n + 1",
    "with a state": "t = t + x[m].mean()\nself.n += 1",
    "until a break": "t = t + x[m].mean()\nif i == 1:\n    break",
    "the mask is kept": "t = t + x[m].mean()\nn = m",
    "two totals": "t = t + x[m].mean()\nn = n + x[m].sum()",
}.items():
    steps.add(
        _name,
        "t, n = x.new_zeros(()), x.new_zeros(())\nfor i in range(3):\n    m = y == i\n    if not m.any():\n        continue\n    "
        + _body.replace("\n", "\n    ")
        + "\nreturn t, n * 1, i",
        args="x: torch.Tensor, y: torch.Tensor",
        init="self.n = 0",
        inputs=(
            f"{_X}, torch.tensor([0, 1, 1, 0])",
            f"-{_X}, torch.tensor([2, 2, 2, 2])",
            f"{_X}, torch.tensor([7, 7, 7, 7])",
        ),
        varied=False,
    )
