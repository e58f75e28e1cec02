"""The same tests, numbers and messages inside of Python's rarer forms: match, try/finally, walrus, class methods."""

from typing import Any

from tests.adversarial.case import IMPORTS, Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_N = "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])"
forms = Group("rarer forms of Python")


def _f(name: str, body: str, **kw: Any) -> None:
    forms.add(name, body, **{"inputs": (_X, _N, "torch.zeros(2, 3)"), "varied": False, "args": "x: torch.Tensor", **kw})


_IF = "if x.sum() > 0:\n    x = x * 2\n"


def _in(text: str, depth: int = 1) -> str:
    return "\n".join("    " * depth + line for line in text.strip("\n").split("\n"))


_f("match on a size", f"match x.shape[0]:\n    case 2:\n{_in(_IF, 2)}\n    case _:\n        x = x + 1\nreturn x")
_f(
    "match on a tensor",
    "match x.sum().item():\n    case 0.0:\n        x = x + 1\n    case n if n > 0:\n        x = x * n\n    case _:\n        pass\nreturn x",
)
_f("match that binds", f"match (x, 2):\n    case (y, n):\n        x = y * n\n{_in(_IF, 2)}\nreturn x")
_f("match on a class", f"match x:\n    case torch.Tensor():\n{_in(_IF, 2)}\nreturn x")
_f("finally", f"try:\n{_in(_IF)}\nfinally:\n    self.n = self.n + 1\nreturn x", init="self.n = 0")
_f("finally that returns", f"try:\n{_in(_IF)}\n    return x\nfinally:\n    self.n = self.n + 1", init="self.n = 0")
_f(
    "finally that overrules",
    f"try:\n{_in(_IF)}\n    raise ValueError('no')\nexcept ValueError:\n    x = x - 1\nelse:\n    x = x + 1\nfinally:\n    x = x * 3\nreturn x",
)
_f("else of try", f"try:\n    n = 2\nexcept ValueError:\n    n = 3\nelse:\n{_in(_IF)}\nreturn x * n")
_f(
    "assert in try",
    "try:\n    assert (x > -3).all(), f'low: {x.min()}'\nexcept AssertionError:\n    x = x.clamp(min=0)\nreturn x",
)
_f("walrus in the test", "if (s := x.sum()) > 0:\n    x = x * s\nreturn x")
_f("walrus below", "if x.sum() > 0:\n    x = (y := x * 2) + 1\nelse:\n    y = x\nreturn x, y")
_f("walrus of a number", "if (n := x.max().item()) > 1:\n    x = x / n\nreturn x")
_f("walrus in a comprehension", "y = [s for i in range(2) if (s := x[i].sum()) > 0]\nreturn x + len(y)")
_f("a chain of assignments", "y = z = x\nif x.sum() > 0:\n    y = z = x * 2\nreturn y, z, y is z")
_f(
    "a star",
    "first, *rest = x, x + 1, x + 2\nif first.sum() > 0:\n    first, *rest = x * 2, x * 3, x * 4\nreturn first, rest",
)
_f("a swap", "y, z = x, x + 1\nif x.sum() > 0:\n    y, z = z, y\nreturn y, z")
_f("delete", "y = x * 2\nif x.sum() > 0:\n    del y\n    y = x * 3\nreturn y")
_f("a lambda's default", "if x.sum() > 0:\n    x = x * 2\nf = lambda y=x: y + 1\nreturn f()")
_f("a nested function reads", "def inner():\n    return x + 1\nif x.sum() > 0:\n    x = x * 2\nreturn inner()")
_f(
    "a nested function writes",
    "def inner():\n    nonlocal x\n    x = x + 1\nif x.sum() > 0:\n    x = x * 2\n    inner()\nreturn x",
)
_f("a generator reads", "g = (x + i for i in range(2))\nif x.sum() > 0:\n    x = x * 2\nreturn list(g)")
_f(
    "a loop with else",
    "for i in range(2):\n    if x.sum() > 100:\n        break\n    x = x * 2\nelse:\n    x = x + 1\nreturn x",
)
_f(
    "a while with else",
    "n = 0\nwhile n < 2:\n    n += 1\n    if x.sum() > 0:\n        x = x * 2\nelse:\n    x = x + 1\nreturn x",
)
_f("continue", "for i in range(3):\n    if x[0, i] < 0:\n        continue\n    x = x + i\nreturn x")
_f("break", "for i in range(3):\n    if x[0, i] < 0:\n        break\n    x = x + i\nreturn x")
_f("return in a loop", "for i in range(3):\n    if x[0, i] < 0:\n        return x * i\n    x = x + i\nreturn x")
_f("with that swallows", f"with contextlib.suppress(ValueError):\n{_in(_IF)}\n    raise ValueError('no')\nreturn x")
_f("with that changes modes", f"with torch.no_grad():\n{_in(_IF)}\nreturn x + 1")
_f("a conditional in a default", "def inner(y=x * 2 if x.sum() > 0 else x):\n    return y\nreturn inner()")
_f("and or", "return (x.sum() > 0 and x * 2) or x - 1", inputs=("torch.tensor(1.0)", "torch.tensor(-1.0)"))
_f("not twice", "if not not x.sum() > 0:\n    x = x * 2\nreturn x")
_f("a chained comparison", "if 0 < x.sum() < 5 < x.max() * 3:\n    x = x * 2\nreturn x")
_f("in a set", "if x.sum().item() in {5.5, 0.0}:\n    x = x * 2\nreturn x")
_f("min of tensors", "if min(x[0, 0], x[1, 0]) > 0:\n    x = x * 2\nreturn x")
_f("any of a generator", "if any(x[i].sum() > 3 for i in range(2)):\n    x = x * 2\nreturn x")
_f("all of a list", "if all([x.sum() > 0, x.max() > 1]):\n    x = x * 2\nreturn x")
_f("sum of bools", "if sum([x.sum() > 0, x.max() > 1]) == 2:\n    x = x * 2\nreturn x")
_f(
    "a class method",
    "return self.scaled(x)",
    methods=f"@classmethod\ndef scaled(cls, x: torch.Tensor):\n{_in(_IF)}\n    return x * cls.k\nk = 3",
)
_f(
    "a static method",
    "return self.scaled(x)",
    methods=f"@staticmethod\ndef scaled(x: torch.Tensor):\n{_in(_IF)}\n    return x",
)
_f(
    "a property",
    "return self.scaled + x",
    methods=f"@property\ndef scaled(self):\n    x = self.w\n{_in(_IF)}\n    return x",
    init="self.w = nn.Parameter(torch.ones(3))",
)
_f(
    "a cached property",
    "return self.scaled + x",
    methods=f"@functools.cached_property\ndef scaled(self):\n    x = self.w\n{_in(_IF)}\n    return x",
    init="self.w = nn.Parameter(torch.ones(3))",
    top="import functools",
)
_f(
    "a decorator that counts",
    "return self.scaled(x), self.n",
    top="import functools\ndef counted(f):\n    @functools.wraps(f)\n    def inner(self, *a):\n        self.n += 1\n        return f(self, *a)\n    return inner",
    methods=f"@counted\ndef scaled(self, x: torch.Tensor):\n{_in(_IF)}\n    return x",
    init="self.n = 0",
)
_f(
    "a decorator that changes",
    "return self.scaled(x)",
    top="def doubled(f):\n    return lambda self, x: f(self, x * -1)",
    methods=f"@doubled\ndef scaled(self, x: torch.Tensor):\n{_in(_IF)}\n    return x",
)
_f(
    "a partial method",
    "return self.scaled(x)",
    top="import functools",
    methods=f"def _scaled(self, x: torch.Tensor, n):\n{_in(_IF)}\n    return x * n\nscaled = functools.partialmethod(_scaled, n=3)",
)
_f(
    "a dispatched function",
    "return scaled(x)",
    top=f"import functools\n@functools.singledispatch\ndef scaled(x):\n    return x\n@scaled.register\ndef _(x: torch.Tensor):\n{_in(_IF)}\n    return x",
)
_f(
    "getattr",
    "return self.y + x",
    methods="def __getattr__(self, name):\n    if name == 'y':\n        if self.w.sum() > 0:\n            return self.w * 2\n        return self.w\n    return super().__getattr__(name)",
    init="self.w = nn.Parameter(torch.ones(3))",
)
_f(
    "call",
    "return self.c(x)",
    top=f"class C:\n    def __call__(self, x: torch.Tensor):\n{_in(_IF, 2)}\n        return x",
    init="self.c = C()",
)
_f(
    "operators",
    "return (self.c + x)",
    top="class C:\n    def __add__(self, x: torch.Tensor):\n        if x.sum() > 0:\n            return x * 2\n        return x\n    def __radd__(self, x):\n        return self + x",
    init="self.c = C()",
)
_f(
    "an enum",
    "if self.mode is Mode.A and x.sum() > 0:\n    x = x * 2\nreturn x",
    top="import enum\nclass Mode(enum.Enum):\n    A = 1\n    B = 2",
    init="self.mode = Mode.A",
)
_f(
    "a named tuple",
    "o = Out(x, x + 1)\nif o.a.sum() > 0:\n    o = o._replace(a=x * 2)\nreturn o",
    top="import collections\nOut = collections.namedtuple('Out', 'a b')",
)
_f(
    "a data class",
    "o = Out(x, 1)\nif o.a.sum() > 0:\n    o.a = o.a * 2\nreturn o.a * o.b",
    top="import dataclasses\n@dataclasses.dataclass\nclass Out:\n    a: torch.Tensor\n    b: int",
)
_f("a type alias", "if x.sum() > 0:\n    x = x * 2\nreturn x", args="x: 'Tensor'", top="Tensor = torch.Tensor")
_f("a wrong annotation", "if x.sum() > 0:\n    x = x * 2\nreturn x", args="x: int")
_f("positional only", "if x.sum() > n:\n    x = x * 2\nreturn x", args="x: torch.Tensor, /, *, n=0")
_f("a global torch in the function", "global torch\nif torch.sum(x) > 0:\n    x = x * 2\nreturn x")
_f("torch is a local name", "torch = self\nif x.sum() > 0:\n    x = x * 2\nreturn x")
_f(
    "torch of another name",
    "if x.sum() > 0:\n    x = x * 2\nreturn x",
    imports=IMPORTS.replace("import torch\n", "import torch as th\nimport torch\n"),
)
_f("semicolons", "if x.sum() > 0: x = x * 2; x = x + 1\nreturn x")
_f("one line else", "if x.sum() > 0: x = x * 2\nelse: x = x - 1\nreturn x")
_f("a comment in between", "if x.sum() > 0:  # positive\n    # more\n    x = x * 2  # twice\n# done\nreturn x")
_f("a backslash", "if x.sum() \\\n        > 0:\n    x = x \\\n        * 2\nreturn x")
_f("an f-string with braces", "if x.sum() > 0:\n    x = x * 2\n    name = f'{x.shape[0]:>{3}}{{}}'\nreturn x")
_f("a docstring", "'''text'''\nif x.sum() > 0:\n    x = x * 2\nreturn x")
_f("nothing else", "if x.sum() > 0:\n    pass\nelse:\n    x = x * 2\nreturn x")
_f("ellipsis", "if x.sum() > 0:\n    ...\nelif x.sum() < 0:\n    x = x * 2\nreturn x")
forms.whole(
    "a module that is a data class",
    IMPORTS
    + "import dataclasses\n\n\n@dataclasses.dataclass(eq=False)\nclass Model(nn.Module):\n    k: float = 2.0\n\n"
    "    def __post_init__(self):\n        super().__init__()\n        self.lin = nn.Linear(3, 3)\n\n"
    "    def forward(self, x: torch.Tensor):\n        x = self.lin(x)\n        if x.sum() > 0:\n            x = x * self.k\n        return x\n",
    inputs=(_X, _N),
    varied=False,
)
forms.whole(
    "a metaclass that wraps forward",
    IMPORTS
    + "\n\nclass Meta(type):\n    def __new__(m, name, bases, d):\n        f = d.get('forward')\n        if f is not None:\n            d['forward'] = lambda self, x: f(self, x) + 1\n        return super().__new__(m, name, bases, d)\n\n\n"
    "class Model(nn.Module, metaclass=Meta):\n    def forward(self, x: torch.Tensor):\n        if x.sum() > 0:\n            x = x * 2\n        return x\n",
    inputs=(_X, _N),
    varied=False,
)
forms.whole(
    "a class made by a function",
    IMPORTS
    + "\n\ndef build(k):\n    class Model(nn.Module):\n        def forward(self, x: torch.Tensor):\n            if x.sum() > 0:\n                x = x * k\n            return x\n    return Model\n\n\nModel = build(3)\nbuild(4)\n",
    inputs=(_X, _N),
    varied=False,
)
