"""Elements that a branch changes in place, in dtypes that do not take the result."""

from tests.adversarial.case import Group

added = Group("elements added to in a branch")
_B, _I, _F, _D, _C = (
    "torch.tensor([[True, False], [True, True]])",
    "torch.tensor([[1, -2], [3, 4]])",
    "torch.tensor([[1.5, -2.0], [3.0, 4.0]])",
    "torch.tensor([[1.5, -2.0], [3.0, 4.0]]).double()",
    "torch.tensor([[1.5, -2.0], [3.0, 4.0]]) * 1j",
)
_LINES = {
    "one": "out[0] += 1",
    "minus one": "out[0] -= 1",
    "a fraction": "out[0] += 0.5",
    "true": "out[0] += True",
    "twice": "out[0, 0] *= 2",
    "half": "out[0] /= 2",
    "y": "out[0] += y[0]",
    "y times": "out[0] *= y[0] * 2",
    "y below": "out[0] -= y[1]",
    "divided by y": "out[0, 1] /= y[0, 0]",
    "a number": "out[0] += n",
    "itself": "out[0] += out[1]",
    "one of it": "out[0] += (out[0] > 0)",
    "set to y": "out[0] = y[0]",
    "set under a mask": "out[y > 0] = 2",
    "a name": "v = y[0] * 2\nout[1] += v",
}
for _name, _line in _LINES.items():
    for _start, _calls in {
        "narrow": (f"{_B}, {_I}", f"{_I}, {_F}", f"{_F}, {_C}", f"{_B}, {_B}", f"{_I}, {_I}", f"{_F}, {_D}"),
        "wide": (f"{_D}, {_F}", f"{_F}, {_I}", f"{_C}, {_F}", f"{_F}, {_B}", f"{_I}.int(), {_I}", f"{_I}.byte(), {_B}"),
    }.items():
        added.add(
            f"{_name}, {_start}",
            "out = x.clone()\nif y.sum() != 100:\n    " + _line.replace("\n", "\n    ") + "\nreturn out",
            args="x: torch.Tensor, y: torch.Tensor, n=2",
            inputs=_calls,
            varied=False,
        )
for _name, _line in {"an array": "n = np.float32(2.5)", "an integer of numpy": "n = np.int64(2)"}.items():
    added.add(
        _name,
        f"{_line}\nout = x.clone()\nif y.sum() != 100:\n    out[0] += n\nreturn out",
        args="x: torch.Tensor, y: torch.Tensor",
        inputs=(f"{_I}, {_I}", f"{_F}, {_F}"),
        varied=False,
    )
