"""What the headers of compile paths ask for, false one by one: arrays, numbers and lists for tensors, other dtypes."""

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_XS = {
    "a tensor": _X,
    "an array": "np.array([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "a number": "3.0",
    "a list": "[[1.0, -2.0], [3.0, 4.0]]",
    "integers": "torch.tensor([[1, -2, 3], [4, 0, -1]])",
    "bytes": "torch.tensor([[1, 2, 3], [4, 0, 1]], dtype=torch.uint8)",
    "bools": "torch.tensor([[True, False, True], [False, True, True]])",
    "bools that are all false": "torch.zeros(2, 3, dtype=torch.bool)",
    "doubles": f"{_X}.double()",
    "halves": f"{_X}.half()",
    "complex numbers": f"{_X} * 1j",
    "nothing": "torch.zeros(0, 3)",
    "one number": "torch.tensor(2.0)",
    "three dimensions": "torch.arange(12.0).reshape(2, 3, 2) - 5",
    "one row": "torch.tensor([1.0, -2.0, 3.0])",
    "an expanded row": "torch.tensor([1.0, -2.0, 3.0]).expand(2, 3)",
}
_MASKS = {
    "bools": "torch.tensor([[True, False, True], [False, True, True]])",
    "bytes": "torch.tensor([[1, 0, 1], [0, 1, 1]], dtype=torch.uint8)",
    "positions": "torch.tensor([1, 0, 1])",
    "a position for each": "torch.tensor([[1, 0, 1], [0, 1, 1]])",
    "rows": "torch.tensor([True, False])",
    "a bool": "True",
    "a bool of no dimensions": "torch.tensor(True)",
    "a position": "1",
    "a slice": "slice(0, 1)",
    "a list": "[True, False]",
    "an array": "np.array([True, False])",
    "none": "None",
    "too short": "torch.tensor([True])",
    "of nothing": "torch.zeros(0, 3, dtype=torch.bool)",
    "nothing chosen": "torch.zeros(2, 3, dtype=torch.bool)",
}
_OF_ONE = {
    "branch": "if x.sum() > 0:\n    x = x * 2\nreturn x",
    "conditional": "return x * 2 if x.sum() > 0 else x - 1",
    "early return": "if x.sum() > 0:\n    return x * 2\nreturn x - 1",
    "root": "if (x > 0).all():\n    x = x**0.5\nreturn x",
    "clamp": "if x.max() > 1:\n    x = x.clip(-1, 1)\nreturn x",
    "check": "if (x > 3.5).any():\n    raise ValueError('high')\nreturn x * 2",
    "assertion": "assert (x < 3.5).all(), f'high: {x}'\nreturn x * 2",
    "number": "n = x.max().item()\nreturn x * n",
    "number of zeros": "n = (x > 0).sum().item()\nreturn x / max(n, 1)",
    "chosen number": "scale = 1.0 if x.max() <= 1.0 else 255.0\nreturn x / scale",
    "masked write": "y = x * 1\nif (y < 0).any():\n    y[y < 0] = 0\nreturn y",
    "element": "best = x.mean(0).argmax()\nreturn x * x[:, best].sum()",
    "length": "n = x.shape[0]\nkept = torch.ones(n, n).triu().bool()\nreturn x[:, :1].expand(n, n)[kept] * 1",
    "mean": "return x[x > 0].mean()",
    "sum": "return x[x > 0].sum()",
    "rows": "y = x * 0\nm = x > 0\ny[m] = torch.tanh(torch.as_tensor(x[m]))\nreturn y",
}
_OF_TWO = {
    "sum": "return x[mask].sum()",
    "mean": "return x[mask].mean()",
    "copy": "y = torch.zeros(2, 3)\ny[mask] = x[mask]\nreturn y",
    "rows": "y = torch.zeros(2, 3)\ny[mask] = torch.tanh(x[mask]) * 2\nreturn y",
    "added rows": "y = torch.ones(2, 3)\ny[mask] += x[mask] * 2\nreturn y",
    "loss": "return (x[mask] - x[mask] * 2).abs().mean()",
    "into more": "y = torch.zeros(2, 3, 4)\ny[mask] = torch.tanh(x[mask])\nreturn y",
    "positions": "y = torch.zeros(2, 3)\ny[torch.where(mask)] = 1.0\nreturn y + x",
}

_TENSORS = {
    "dtypes": (
        "a tensor", "integers", "bytes", "bools that are all false", "bools", "doubles", "halves", "complex numbers"
    ),
    "shapes": ("a tensor", "an expanded row", "one row", "three dimensions", "one number", "nothing"),
    "an array": ("a tensor", "an array"),
    "a number": ("a tensor", "a number"),
    "a list": ("a tensor", "a list"),
}  # fmt: skip
"""What raises comes last: Dynamo leaves code alone in which it met an exception."""
_SELECTORS = {
    "dtypes": ("bools", "nothing chosen", "bytes", "a position for each", "positions"),
    "shapes": ("bools", "rows", "a bool of no dimensions", "too short"),
    "no elements": ("bools", "of nothing"),
    "a bool": ("bools", "a bool"),
    "a position": ("bools", "a position"),
    "a slice": ("bools", "a slice"),
    "a list": ("bools", "a list"),
    "an array": ("bools", "an array"),
    "none": ("bools", "none"),
}

false = Group("what headers ask is false")
for _name, _body in _OF_ONE.items():
    for _kind, _names in _TENSORS.items():
        false.add(
            f"{_name}, {_kind}",
            _body,
            args="x: torch.Tensor",
            inputs=tuple(_XS[each] for each in _names),
            training=(False,),
            varied=False,
        )
for _name, _body in _OF_TWO.items():
    _mask = _MASKS["bools"]
    _given = {f"{kind} as masks": [f"({_X}, {_MASKS[each]})" for each in names] for kind, names in _SELECTORS.items()}
    _given |= {f"{kind} under it": [f"({_XS[each]}, {_mask})" for each in names] for kind, names in _TENSORS.items()}
    for _kind, _inputs in _given.items():
        false.add(
            f"{_name} under a mask, {_kind}",
            _body,
            args="x: torch.Tensor, mask: torch.Tensor",
            inputs=tuple(_inputs),
            training=(False,),
            varied=False,
        )
