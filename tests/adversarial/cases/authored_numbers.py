"""Numbers that are computed with and tested, where names, masks, hooks and texts are not what they seem."""

from tests.adversarial.cases.authoring import Authored

numbers = Authored("authored numbers")
_ONE = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_TWO = "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])"
_ALONE = ("alone",)


def _number(
    name: str, body: str, *inputs: str, args: str = "x", top: str = "", more: str = "", methods: str = ""
) -> None:
    lines = "\n".join(f"        {line}" for line in body.strip("\n").split("\n"))
    own = "".join(f"        {line}\n" for line in more.split("\n") if line)
    extra = "".join(f"    {line}\n" for line in methods.split("\n"))
    numbers.write(
        name,
        f"{top}\n\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.bins = 3\n        self.low = 1.0\n        self.lin = nn.Linear(3, 3)\n"
        f"        self.register_buffer('scale', torch.tensor(2.0))\n        self.register_buffer('sums', torch.zeros(3))\n"
        f"{own}{extra}\n    def forward(self, {args}):\n{lines}\n",
        *(inputs or (_ONE, _TWO)),
        company=_ALONE,
    )


_number(
    "a mask that is annotated as bools and holds integers",
    "w = torch.zeros_like(x)\nn = x.abs().sum().item()\nm = x.abs().max().item()\nw[mask] = n / max(m, 1.0)\n"
    "if m > 2.0:\n    w[mask] = m\nreturn w * x",
    f"{_ONE}, torch.tensor([0, 1])",
    f"{_TWO}, torch.tensor([True, False])",
    f"{_ONE}, torch.tensor([1, 1], dtype=torch.uint8)",
    args="x: torch.Tensor, mask: torch.BoolTensor",
)
_number(
    "a global function called taken",
    "pos = x > 0\nn = pos.sum().item()\ny = taken(x)\nif n > 0:\n    y = y / n\nz = taken(y)\nif n > 1:\n    z = z * n\n"
    "return z",
    top="def taken(x):\n    return x * 2",
)
_number(
    "locals called taken",
    "taken_ = x * 2\nis_taken = x * 3\npos = x > 0\nn = pos.sum().item()\nm = x.max().item()\ny = x * 1\nif n > 0:\n    y = y / n\n"
    "if m > 0:\n    y = y / m\nif n > 2:\n    y = y * m\nreturn y + taken_ + is_taken",
)
_number(
    "a text of several lines between",
    'n = x.max().item()\nm = x.min().item()\ny = torch.einsum("""ij,ij\n    ->ij""", x, x)\ny = (y - m) / max(n - m, 1e-3)\n'
    'self.note = """one\n  two\n"""\nif n > 0:\n    y = y / n\nreturn y, len(self.note)',
)
_number(
    "a hook that writes the buffer",
    "n = self.scale.item()\nm = x.max().item()\ny = self.lin(x)\ny = (y - m) / max(n - m, 1e-3)\nif n > 0:\n    y = y / n\n"
    "return y",
    more="self.scale = self.scale.double()\nself.lin.register_forward_hook(lambda *a: self.scale.mul_(2) and None)",
)
_number(
    "a method that writes the buffer",
    "n = self.scale.item()\nm = x.max().item()\nself.advance()\ny = (x - m) / max(n - m, 1e-3)\nif n > 0:\n    y = y / n\n"
    "return y",
    more="self.scale = self.scale.double()",
    methods="def advance(self):\n    self.scale.mul_(2)",
)
_number(
    "a function that writes what it is given",
    "n = self.scale.item()\nm = x.max().item()\nadvance(self)\ny = (x - m) / max(n - m, 1e-3)\nreturn y",
    top="def advance(owner):\n    owner.scale.mul_(2)",
    more="self.scale = self.scale.double()",
)
_number(
    "integers beyond 53 bits",
    "n = big.sum().item()\nm = big.max().item()\ny = x * (n - m)\nif n > m:\n    y = y / (n - m)\nreturn y",
    f"{_ONE}, torch.tensor([1, 2**60])",
    f"{_ONE}, torch.tensor([3, 2**61])",
    args="x, big",
)
_number(
    "a count that another function reads",
    "n = 0\ntotal = max((x > 0).sum().item(), 1.0)\nw = torch.zeros_like(x)\nfor i in range(self.bins):\n"
    "    inds = (x > i) & (x < i + 1)\n    k = inds.sum().item()\n    if k > 0:\n        w[inds] = total / k\n        n += 1\n"
    "show = lambda: n\nif n > 0:\n    w = w / n\nreturn w, show()",
)
_number(
    "a count that begins with an argument",
    "total = max((x > 0).sum().item(), 1.0)\nw = torch.zeros_like(x)\nfor i in range(self.bins):\n"
    "    inds = (x > i) & (x < i + 1)\n    k = inds.sum().item()\n    if k > 0:\n        w[inds] = total / k\n        n += 1\n"
    "if n > 0:\n    w = w / n\nreturn w.sum() / total",
    _ONE,
    f"{_ONE}, 2",
    f"{_ONE}, 0.5",
    f"{_ONE}, torch.tensor(3)",
    args="x, n=0",
)
_number(
    "a loop without rounds",
    "total = max((x > 0).sum().item(), 1.0)\nw = torch.zeros_like(x)\nn = 0\nfor i in range(self.bins - 3):\n"
    "    inds = (x > i) & (x < i + 1)\n    k = inds.sum().item()\n    if k > 0:\n        w[inds] = total / k\n        n += 1\n"
    "if n > 0:\n    w = w / n\nreturn w.sum() / total",
)
_number(
    "overlapping masks",
    "total = max((x > 0).sum().item(), 1.0)\nw = torch.ones_like(x)\nn = 0\nfor i in range(self.bins):\n"
    "    inds = x > i\n    k = inds.sum().item()\n    if k > 1:\n        w[inds] = w.max() * 0 + total / k\n        n += 1\n"
    "if n > 1:\n    w = w / n\nreturn w.sum() / total",
)
_number(
    "a test that is not of zero",
    "w = torch.ones_like(x)\ntotal = max(x.sum().item(), 1.0)\nfor i in range(self.bins):\n"
    "    inds = x > i\n    k = inds.sum().item()\n    if k > 1:\n        w[inds] = total / k\n"
    "return w / total",
)
_number(
    "a test of what is below zero",
    "w = torch.ones_like(x)\ntotal = max(x.sum().item(), 1.0)\nfor i in range(self.bins):\n"
    "    inds = x > i\n    k = inds.sum().item()\n    if k < 3:\n        w[inds] = total - k\n    if k != 0:\n        self.sums[i] = 0.5 * self.sums[i] + k / total\n"
    "return w / total * self.sums",
)
_number(
    "a leaf that is written",
    "n = x.max().item()\nm = max(n, 1.0)\nw = self.gain\nw[x.amax(0) > 1] = n / m\nreturn x * w",
    more="self.gain = torch.ones(3)",
)
_number(
    "an argument that is written",
    "n = x.max().item()\nif n > 1:\n    x /= n\nreturn x * self.low",
)
_number(
    "a result that is the input",
    "n = x.max().item()\nm = x.min().item()\ny = x\nif n > 5:\n    y = y / n\ny.add_(m - n)\nreturn y, x",
)
_number(
    "division by zero",
    "n = (x > 9).sum().item()\nm = x.max().item()\ny = x * (m / n)\nreturn y",
    "torch.full((2, 3), 10.0)",
    _ONE,
)
_number(
    "bounds in both directions",
    "n, m = x.min().item(), x.max().item()\nn, m = max(n, self.low), min(m, 2.0)\ny = (x - n) / max(m, 0.5)\n"
    "z = (x - n) / min(-0.1, n)\nreturn y + z * max(0.0, m)",
    _ONE,
    "torch.tensor([[nan, 1.0, 2.0]])",
    "torch.tensor([[-0.0, 0.0, -0.0]])",
)
_number(
    "elements of a buffer that an observer keeps",
    "low, high = x.min().item(), x.max().item()\nif high > 1:\n    self.sums[0] = 0.9 * self.sums[0] + 0.1 * high\n"
    "if low < 0:\n    self.sums[1] = 0.9 * self.sums[1] + 0.1 * low\nspan = max(high - low, 1e-3)\n"
    "return (x - low) / span + self.sums",
)
