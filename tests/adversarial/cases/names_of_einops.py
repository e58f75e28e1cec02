"""Names of einops that mean something else, its views and patterns."""

from typing import Any

from tests.adversarial.case import IMPORTS, Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_N = "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])"
_E = IMPORTS + "from einops import rearrange, reduce, repeat, einsum, pack, unpack\nimport einops\n"

ein = Group("einops")
_XS = (_X, _N, "torch.zeros(2, 3)", "torch.ones(2, 3, dtype=torch.long)", "torch.ones(3)", "torch.ones(2, 3, 4)")


def _e(name: str, body: str, **kw: Any) -> None:
    kw = {"imports": _E, "inputs": _XS, "varied": False, "args": "x: torch.Tensor", **kw}
    ein.add(name, body, **kw)


_T = "if x.sum() > 0:\n    {}\nreturn x * 1"
_e("a local of the name", "rearrange = lambda t, p: t.add_(1)\n" + _T.format("x = rearrange(x, 'a b -> b a')"))
_e(
    "an argument of the name",
    _T.format("x = rearrange(x, 'a b -> b a')"),
    args="x: torch.Tensor, rearrange=lambda t, p: t.neg()",
)
_e(
    "a function of the file",
    _T.format("x = rearrange(x, 'a b -> b a')"),
    top="def rearrange(t, p):\n    t.add_(1)\n    return t",
)
_e(
    "assigned in the file",
    _T.format("x = repeat(x, 'a b -> r a b', r=1).sum(0)"),
    top="repeat = lambda t, p, **k: t * 3",
)
_e(
    "assigned in a function of the file",
    _T.format("x = repeat(x, 'a b -> r a b', r=1).sum(0)"),
    top="def change():\n    global repeat\n    repeat = lambda t, p, **k: t.add_(3)\nchange()",
)
_e(
    "replaced in the package",
    _T.format("x = einops.rearrange(x, 'a b -> b a').t()"),
    files={
        "other.py": "import einops\n_was = einops.rearrange\n\n\ndef louder(t, p, **k):\n    return _was(t, p, **k) + 1\n\n\neinops.rearrange = louder\n"
    },
)
_e("imported in the function", "from einops import rearrange as r\n" + _T.format("x = r(x, 'a b -> b a').t()"))
_e(
    "imported in try",
    _T.format("x = rearrange(x, 'a b -> b a').t()"),
    imports=IMPORTS + "try:\n    from einops import rearrange\nexcept ImportError:\n    rearrange = None\n",
)
_e("imported with a star", _T.format("x = rearrange(x, 'a b -> b a').t()"), imports=IMPORTS + "from einops import *\n")
_e(
    "of einops.einops",
    _T.format("x = rearrange(x, 'a b -> b a').t()"),
    imports=IMPORTS + "from einops.einops import rearrange\n",
)
_e("a list", "if x.sum() > 0:\n    y = rearrange([x, x], 'n a b -> a n b')\nelse:\n    y = x\nreturn y")
_e("a list of an argument", "y = rearrange(list(x), 'n a -> a n')\nif y.sum() > 0:\n    y = y * 2\nreturn y")
_e(
    "a tuple given",
    "y = rearrange(x, 'a b -> b a')\nif y.sum() > 0:\n    y = y * 2\nreturn y",
    args="x",
    inputs=("[torch.ones(3), torch.ones(3)]", "[torch.ones(3), -torch.ones(3)]", "np.ones((2, 3))", _X),
)
_e(
    "an array",
    "y = repeat(x, 'a b -> a b c', c=2)\nif y.sum() > 0:\n    y = y * 2\nreturn torch.as_tensor(y)",
    args="x",
    inputs=("np.ones((2, 3))", _X, _N),
)
_e(
    "reduce with a callable",
    "y = reduce(x, 'a b -> a', f)\nif y.sum() > 0:\n    y = y * 2\nreturn y",
    top="SEEN = []\ndef f(t, axes):\n    SEEN.append(1)\n    return t.sum(axes) + len(SEEN)",
)
_e(
    "reduce with a callable that writes",
    "y = reduce(x.clone(), 'a b -> a', f)\nif y.sum() > 0:\n    y = y * 2\nreturn y, x",
    top="def f(t, axes):\n    t.mul_(2)\n    return t.sum(axes)",
)
_e(
    "reduce with a callable that keeps",
    "y = reduce(x, 'a b -> a b', self.keep)\nif y.sum() > 0:\n    y = y * 2\nself.kept.add_(1)\nreturn y, x",
    methods="def keep(self, t, axes):\n    self.kept = t\n    return t",
    init="self.kept = None",
)
_e("reduce of integers by mean", "y = reduce(x, 'a b -> a', 'mean')\nif y.sum() > 0:\n    y = y * 2\nreturn y")
_e(
    "reduce over all",
    "y = reduce(x, 'a b ->', 'max')\nif y > 0:\n    x = x * 2\nreturn x",
    inputs=(_X, _N, "torch.zeros(0, 3)", "torch.ones(3)"),
)
_e("reduce of any", "y = reduce(x > 0, 'a b -> a', 'any')\nif y.all():\n    x = x * 2\nreturn x")
_e("reduce in the test", "if reduce(x, 'a b -> a', 'min').min() > 0:\n    x = x * 2\nreturn x")
_e("reduce of one axis", "y = reduce(x, 'a b -> a b', 'sum')\ny.add_(1)\nif x.sum() > 0:\n    x = x * 2\nreturn x, y")
_e("a view written below", "y = rearrange(x, 'a b -> (a b)')\nif y.sum() > 0:\n    y = y * 2\ny.add_(1)\nreturn x, y")
_e("a view of a copy", "y = rearrange(x.t(), 'a b -> (a b)')\nif x.sum() > 0:\n    x = x * 2\ny.add_(1)\nreturn x, y")
_e("a view of a select", "if x.sum() > 0:\n    x = x * 2\ny = rearrange(x, 'a b -> b a')\ny.add_(1)\nreturn x, y")
_e("repeat of one is a view", "y = repeat(x, 'a b -> a b 1')\nif x.sum() > 0:\n    x = x + 0.5\ny.add_(1)\nreturn x, y")
_e(
    "repeat is expanded",
    "y = repeat(x, 'a b -> r a b', r=2)\nif y.sum() > 0:\n    y = y.clone()\ny[0] = 1\nreturn x, y",
)
_e("identity", "y = rearrange(x, 'a b -> a b')\nif x.sum() > 0:\n    y = x * 2\nreturn y is x, y")
_e(
    "a dtype asked",
    "y = reduce(x, 'a b -> a', 'sum')\nif y.dtype == torch.float32 and y.sum() > 0:\n    y = y * 2\nreturn y",
)
_e(
    "a name for the pattern",
    "p = 'a b -> b a' if x.shape[0] > 2 else 'a b -> a b'\nif x.sum() > 0:\n    x = rearrange(x, p) * 2\nreturn x",
)
_e("sizes given", "if x.sum() > 0:\n    x = rearrange(x, 'a b -> a b', b=4)\nreturn x")
_e("sizes of another", "if x.sum() > 0:\n    x = repeat(x, 'a b -> a b c', c=x.shape[0]).mean(-1)\nreturn x")
_e("a size of zero", "if x.sum() > 0:\n    x = repeat(x, 'a b -> a b c', c=0).sum(-1)\nreturn x")
_e("a negative size", "if x.sum() > 0:\n    x = repeat(x, 'a b -> a b c', c=-1).sum(-1)\nreturn x")
_e("a bool size", "if x.sum() > 0:\n    x = repeat(x, 'a b -> a b c', c=True).sum(-1)\nreturn x")
_e("a float size", "if x.sum() > 0:\n    x = repeat(x, 'a b -> a b c', c=2.0).sum(-1)\nreturn x")
_e("numbers on the right", "if x.sum() > 0:\n    x = repeat(x, 'a b -> a b 2').sum(-1)\nreturn x")
_e("an underscore", "if x.sum() > 0:\n    x = rearrange(x, 'a _b -> _b a').t()\nreturn x")
_e("an axis named twice", "if x.sum() > 0:\n    x = rearrange(x, 'a a -> a')\nreturn x", inputs=(_N, _X))
_e("a keyword of Python", "if x.sum() > 0:\n    x = rearrange(x, 'if b -> b if').t()\nreturn x")
_e("a missing space", "if x.sum() > 0:\n    x = rearrange(x, 'a b->b a').t()\nreturn x")
_e("two arrows", "if x.sum() > 0:\n    x = rearrange(x, 'a b -> b a -> a b')\nreturn x")
_e("dots twice", "if x.sum() > 0:\n    x = rearrange(x, '... a ... -> a ...')\nreturn x")
_e(
    "dots on one side",
    "if x.sum() > 0:\n    x = rearrange(x, 'a ... -> a')\nreturn x",
    inputs=("-torch.ones(3)", "torch.ones(3)", _X),
)
_e("dots new on the right", "if x.sum() > 0:\n    x = repeat(x, 'a b -> a b ...')\nreturn x")
_e("dots in parentheses", "if x.sum() > 0:\n    x = x + rearrange(x, 'a ... -> (a ...)').sum()\nreturn x")
_e("empty parentheses", "if x.sum() > 0:\n    x = rearrange(x, 'a b -> a () b').sum(1)\nreturn x")
_e(
    "a one on the left",
    "if x.sum() > 0:\n    x = rearrange(x, 'a 1 b -> a b')\nreturn x",
    inputs=("torch.ones(2, 1, 3)", "-torch.ones(2, 1, 3)", "-torch.ones(2, 2, 3)"),
)
_e("unicode", "if x.sum() > 0:\n    x = rearrange(x, 'a é -> é a').t()\nreturn x")
_e("positions given by name", "if x.sum() > 0:\n    x = rearrange(tensor=x, pattern='a b -> b a').t()\nreturn x")
_e("a star", "p = ('a b -> b a',)\nif x.sum() > 0:\n    x = rearrange(x, *p).t()\nreturn x")
_e("einsum", "if x.sum() > 0:\n    x = einsum(x, x, 'a b, a b -> a b')\nreturn x")
_e("einsum is a view", "y = einsum(x, 'a b -> b a')\nif x.sum() > 0:\n    x = x * 2\ny.add_(1)\nreturn x, y")
_e("pack", "y, ps = pack([x, x], 'a *')\nif y.sum() > 0:\n    y = y * 2\nreturn y, ps")
_e(
    "unpack",
    "y, ps = pack([x, x], 'a *')\na, b = unpack(y, ps, 'a *')\nif a.sum() > 0:\n    a = a * 2\nb.add_(1)\nreturn y, a, b",
)
_L = _E + "from einops.layers.torch import Rearrange, Reduce\n"
_e(
    "a layer",
    "y = self.turn(x)\nif y.sum() > 0:\n    y = y * 2\nreturn y",
    imports=_L,
    init="self.turn = Rearrange('a b -> b a')",
)
_e(
    "a layer whose view is written",
    "y = self.turn(x)\nif x.sum() > 0:\n    x = x + 1\ny.add_(1)\nreturn x, y",
    imports=_L,
    init="self.turn = Rearrange('a b -> b a')",
)
_e(
    "a layer in the branch",
    "if x.sum() > 0:\n    x = self.turn(x).t()\nreturn x",
    imports=_L,
    init="self.turn = Rearrange('a b -> b a')",
)
_e(
    "a layer that reduces",
    "y = self.turn(x)\nif y.sum() > 0:\n    y = y * 2\nreturn y",
    imports=_L,
    init="self.turn = Reduce('a b -> a', 'max')",
)
_e(
    "layers in a row",
    "y = self.turn(x)\nif y.sum() > 0:\n    y = y * 2\ny.add_(1)\nreturn x, y",
    imports=_L,
    init="self.turn = nn.Sequential(Rearrange('a b -> b a'), nn.Identity())",
)
_e(
    "a layer with a hook",
    "y = self.turn(x)\nif y.sum() > 0:\n    y = y * 2\nreturn y",
    imports=_L,
    init="self.turn = Rearrange('a b -> b a')\nself.turn.register_forward_hook(lambda m, a, r: r.add_(1))",
)
_e("rows of a mask", "m = rearrange(x > 0, 'a b -> (a b)')\ny = rearrange(x, 'a b -> (a b)')\nreturn y[m].mean()")
_e("rows of a mask written", "m = x > 0\ny = rearrange(x, 'a b -> b a')\ny[m.t()] = 0\nreturn x, y[m.t()].sum()")
_e("a number", "n = reduce(x, 'a b ->', 'sum').item()\nreturn x * n")
_e(
    "a number of a view",
    "n = rearrange(x[0, 0], '->')\nk = n.item()\nx[0, 0] = 5\nreturn x * k",
    inputs=(f"{_X}.clone()", f"{_N}.clone()"),
)
_e(
    "a mask that is filled",
    "if x.sum() > 0:\n    x = x.masked_fill(rearrange(m, 'a -> a 1'), -1e9)\nreturn x",
    args="x: torch.Tensor, m: torch.Tensor",
    inputs=(
        f"{_X}, torch.tensor([True, False])",
        f"{_X}, torch.tensor([1, 0])",
        f"{_N}, torch.tensor([True, False, True])",
        f"{_X}, torch.tensor([[True, False]])",
        f"{_N}, None",
    ),
)
_e(
    "a mask out of one",
    "if m is not None and m.any():\n    x = x.masked_fill(rearrange(~m, 'a -> a 1'), 0)\nreturn x",
    args="x: torch.Tensor, m=None",
    inputs=(
        f"{_X}, torch.tensor([True, False])",
        f"{_X}, torch.tensor([1, 0])",
        f"{_X}",
        f"{_X}, torch.tensor([255, 0], dtype=torch.uint8)",
    ),
)
