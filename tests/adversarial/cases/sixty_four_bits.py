"""Numbers of lists that 64 bits do not hold, and what shows whether a number is one of NumPy."""

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"

bits = Group("sixty-four bits")
for _name, _body in {
    "sum of a list": "t = torch.tensor(self.levels)\nreturn x * float(t.sum().item())",
    "product by NumPy": "n = np.prod(self.levels)\nreturn x * float(n)",
    "product as an argument": "return x * torch.full((3,), float(np.prod(self.levels)))",
    "product of a tensor": "n = torch.prod(torch.tensor(self.levels)).item()\nreturn x * float(n)",
    "largest": "t = torch.tensor(self.levels)\nreturn x * float(t.max().item())",
}.items():
    for _kind, _levels in {
        "large": "[2**62, 2**62]",
        "the smallest": "[-(2**62), 2]",
        "below the smallest": "[-(2**62), -(2**62), -1]",
        "three": "[2**62, 2**62, 2**62, 2**62, 5]",
        "small": "[2, 3]",
    }.items():
        bits.add(
            f"{_name}, {_kind}", _body, init=f"self.levels = {_levels}", inputs=(_X,), training=(False,), varied=False
        )

shown = Group("numbers as they are written")
for _name, _body in {
    "repr": "k = f'{np.prod(x.shape)!r}'\nreturn x * len(k), k",
    "ascii": "k = ascii(np.prod(x.shape))\nreturn x * len(k), k",
    "a name": "n = np.prod(x.shape)\nk = f'{n!r}'\nreturn x * len(k), k",
    "text": "k = f'{np.prod(x.shape)}'\nreturn x * len(k), k",
}.items():
    shown.add(_name, _body, inputs=(_X, "torch.ones(4, 3)"), training=(False,), varied=False)
