"""Numbers that some tests leave out, and masks that sizes decide."""

from typing import Any

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_N = "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])"
_T = "torch.arange(9.0).reshape(3, 3) - 4"
_INPUTS = (_X, _T, "torch.ones(4, 3) * 2", _N)
_MADE = "import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    {}\n    return made\n"

left = Group("numbers left out")
_L = "self.register_buffer('speed', torch.ones(1))\nself.norm = nn.BatchNorm1d(3)\nself.rate = 0.0\nself.at = 3"


def _left(name: str, body: str, init: str = _L, inputs: tuple[str, ...] = _INPUTS, **options: Any) -> None:
    left.add(name, body, init=init, inputs=inputs, **options)


_left("used behind a test", "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\nreturn x")
_left("returned as well", "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\nreturn x, n")
_left(
    "in a finally",
    "n = self.speed.item()\ntry:\n    x = x + 1\nfinally:\n    if self.rate > 0:\n        x = x * n\nreturn x",
)
_left("in a while", "n = self.speed.item()\nwhile self.rate > 0:\n    x = x * n\n    self.rate -= 1\nreturn x")
_left(
    "test is changed by a hook",
    "n = self.speed.item()\nx = self.norm(x)\nif self.rate > 0:\n    x = x * n\nreturn x",
    outside="import model\n\ndef make():\n    m = model.Model()\n    m.norm.register_forward_hook(lambda s, a, o: setattr(m, 'rate', 1.0))\n    return m\n",
    varied=False,
)
_left(
    "test is changed by a part",
    "n = self.speed.item()\nx = self.part(x)\nif self.part.on:\n    x = x * n\nreturn x",
    top="class Part(nn.Module):\n    on = False\n    def forward(self, x):\n        self.on = not self.on\n        return x * 2",
    init=_L + "\nself.part = Part()",
)
_left(
    "test is a property",
    "n = self.speed.item()\nif self.on:\n    x = x * n\nreturn x",
    methods="count = 0\n@property\ndef on(self):\n    self.count += 1\n    return self.count > 1",
)
_left("deleted", "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\ndel n\nreturn x")
_left("locals", "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\nreturn x, sorted(locals())")
_left("walrus", "n = self.speed.item()\nif self.rate > 0 and (m := n) > 0:\n    x = x * m\nreturn x")
_left("conditional expression", "n = self.speed.item()\ny = x * n if self.rate > 0 else x\nreturn y")
_left("or", "n = self.speed.item()\nif self.rate > 0 or n > 0:\n    x = x * n\nreturn x")
_left("and", "n = self.speed.item()\nif self.rate > 0 and n > 0:\n    x = x * n\nreturn x")
_left(
    "rate is a tensor",
    "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\nreturn x",
    outside=_MADE.format("made.rate = torch.tensor(1.0)"),
    varied=False,
)
_left(
    "rate is text",
    "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\nreturn x",
    outside=_MADE.format("made.rate = 'a'"),
    varied=False,
)
_left(
    "speed of two",
    "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\nreturn x",
    outside=_MADE.format("made.speed = torch.ones(2)"),
    varied=False,
)
_left(
    "speed is a number",
    "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\nreturn x",
    outside=_MADE.format("del made.speed\n    made.speed = 3.0"),
    varied=False,
)
_left(
    "speed is a subclass",
    "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\nreturn x, self.seen",
    init=_L + "\nself.seen = []",
    outside="import torch, model\nclass T(torch.Tensor):\n    def item(self):\n        model.LOG.append(1)\n        return 2.0\n\ndef make():\n    m = model.Model()\n    m.speed = torch.ones(1).as_subclass(T)\n    m.seen = model.LOG\n    return m\n",
    top="LOG = []",
    varied=False,
)
_left("numel", "n = x.numel()\nm = self.speed.item()\nif n > 8:\n    x = x * m\nreturn x")
_left("training", "n = int(self.speed)\nif self.training:\n    x = x * n\nreturn x")
_left(
    "int of nan",
    "n = int(self.speed)\nif self.training:\n    x = x * n\nreturn x",
    outside=_MADE.format("made.speed = torch.tensor([float('nan')])"),
    varied=False,
)
_left(
    "int of bool",
    "n = int(self.speed)\nif self.training:\n    x = x * n\nreturn x",
    outside=_MADE.format("made.speed = torch.tensor([True])"),
    varied=False,
)
_left(
    "nested function later",
    "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\ndef f():\n    return n\nreturn x, f()",
)
_left("nested class", "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\nclass A:\n    v = n\nreturn x, A.v")
_left("assert", "n = self.speed.item()\nassert self.rate == 0 or n > 0\nreturn x")
_left("format", "n = self.speed.item()\nif self.rate > 0:\n    logger.warning(f'{n}')\nreturn x")
_left(
    "match",
    "n = self.speed.item()\nmatch self.at:\n    case 1:\n        x = x * n\n    case _:\n        pass\nreturn x",
)
_left("loop of none", "n = self.speed.item()\nfor i in range(int(self.rate)):\n    x = x * n\nreturn x")
_left("augmented", "n = self.speed.item()\nif self.rate > 0:\n    n += 1\nreturn x * n")
_left("assigned again before use", "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\nn = 5\nreturn x * n")
_left(
    "test before and other test after",
    "n = self.speed.item()\nif self.rate > 0:\n    x = x * n\nif not self.rate:\n    x = x / n\nreturn x",
)
_left("early return", "n = self.speed.item()\nif self.rate == 0:\n    return x\nreturn x * n")
_left("early raise", "n = self.speed.item()\nif self.rate == 0:\n    raise ValueError('rate')\nreturn x * n")
_left("global test", "n = self.speed.item()\nif FLAG:\n    x = x * n\nreturn x", top="FLAG = False")
_left(
    "global test changed from outside",
    "n = self.speed.item()\nif FLAG:\n    x = x * n\nreturn x",
    top="FLAG = False",
    outside="import model\n\ndef make():\n    m = model.Model()\n    def hook(s, a, o):\n        model.FLAG = not model.FLAG\n    m.register_forward_hook(hook)\n    return m\n",
    varied=False,
)
_left("amp", "n = self.speed.item()\nif torch.is_autocast_enabled():\n    x = x * n\nreturn x")
_left(
    "sparse speed",
    "n = self.speed.max().item()\nif self.rate > 0:\n    x = x * n\nreturn x",
    outside=_MADE.format("made.speed = torch.ones(1).to_sparse()"),
    varied=False,
)
_left(
    "uint8 mean",
    "n = self.speed.mean().item()\nif self.rate > 0:\n    x = x * n\nreturn x",
    outside=_MADE.format("made.speed = torch.ones(1, dtype=torch.uint8)"),
    varied=False,
)

masks = Group("counted masks")


def _mask(
    name: str, body: str, init: str = "self.steps = 2", inputs: tuple[str, ...] = _INPUTS, **options: Any
) -> None:
    masks.add(name, body, init=init, inputs=inputs, **options)


H = "n = x.shape[0]\ny = x @ x.T\n"
_mask("triangle", H + "upper = torch.ones(n, n).triu(1).bool()\nreturn y[upper].exp()")
_mask("triangle written", H + "upper = torch.ones(n, n).triu(1).bool()\nz = y[upper]\nz += 1\nreturn z, y")
_mask(
    "triangle of an attribute set outside",
    H + "upper = torch.ones(n, n).triu(self.steps).bool()\nreturn y[upper].exp()",
    outside=_MADE.format("made.steps = torch.tensor(1)"),
    varied=False,
)
_mask(
    "attribute changed each call",
    H + "upper = torch.ones(n, n).triu(self.steps).bool()\nz = y[upper].exp()\nself.steps -= 1\nreturn z",
)
_mask(
    "attribute True",
    H + "kept = torch.full((n, n), self.steps) > 0\nreturn y[kept]",
    outside=_MADE.format("made.steps = True"),
    varied=False,
)
_mask(
    "attribute above int64",
    H + "kept = torch.arange(n) < self.steps\nreturn y[kept]",
    outside=_MADE.format("made.steps = 2**70"),
    varied=False,
)
_mask("global number", H + "kept = torch.arange(n) >= FIRST\nreturn y[kept]", top="FIRST = 1")
_mask(
    "global number changed",
    H + "kept = torch.arange(n) >= FIRST\nreturn y[kept]",
    top="FIRST = 1",
    outside="import model\n\ndef make():\n    m = model.Model()\n    def hook(s, a, o):\n        model.FIRST += 1\n    m.register_forward_hook(hook)\n    return m\n",
    varied=False,
)
_mask(
    "class attribute changed",
    H + "kept = torch.arange(n) >= self.first\nreturn y[kept]",
    methods="first = 0",
    outside="import model\n\ndef make():\n    m = model.Model()\n    def hook(s, a, o):\n        model.Model.first += 1\n    m.register_forward_hook(hook)\n    return m\n",
    varied=False,
)
_mask("default dtype of torch", H + "kept = torch.full((n, n), 1e-46).bool()\nreturn y[kept]")
_mask("half overflow", H + "kept = torch.full((n,), 70000.0, dtype=torch.float16) > 65504\nreturn y[kept]")
_mask("division", H + "kept = torch.arange(n) / 3 > 0.5\nreturn y[kept]")
_mask("floor of negative", H + "kept = (torch.arange(n) - 2) // 2 < 0\nreturn y[kept]")
_mask("remainder by size", H + "kept = torch.arange(n * 2) % n == 0\nreturn y.repeat(2, 1)[kept]")
_mask("by zero", H + "kept = torch.arange(n) % (n - 3) == 0\nreturn y[kept]")
_mask("uint8 arange", H + "kept = torch.arange(n, dtype=torch.uint8) - 1 > 1\nreturn y[kept]")
_mask("nonzero tuple", H + "kept = torch.eye(n).bool()\na, b = kept.nonzero(as_tuple=True)\nreturn y[a, b], a + b")
_mask("where", H + "kept = torch.eye(n).bool()\na, b = torch.where(kept)\nreturn y[a, b], a")
_mask("where of floats", H + "kept = torch.eye(n) - 0.0\na, b = torch.where(kept)\nreturn y[a, b], a")
_mask("inverted integers", H + "kept = torch.eye(n, dtype=torch.long)\nreturn (~kept).nonzero().sum() + y.sum()")
_mask("inverted uint8", H + "kept = torch.eye(n, dtype=torch.uint8)\nreturn y[(~kept).nonzero(as_tuple=True)]")
_mask("inverted mask of bools", H + "kept = torch.eye(n, dtype=torch.bool)\nreturn y[~kept].sum(), y[kept].sum()")
_mask("complex", H + "kept = torch.eye(n, dtype=torch.complex64)\nreturn kept.nonzero() + 0, y.sum()")
_mask("requires grad through", H + "kept = torch.ones(n, n).tril().bool()\nreturn (y[kept] ** 2).sum().sqrt()")
_mask(
    "in a loop",
    H
    + "out = []\nfor k in range(3):\n    kept = torch.ones(n, n).triu(k).bool()\n    out.append(y[kept].sum())\nreturn torch.stack(out)",
)
_mask(
    "in a method",
    H + "return self.pick(y)",
    methods="def pick(self, y):\n    k = y.size(0)\n    kept = torch.ones(k, k).triu(1).bool()\n    return y[kept]",
)
_mask(
    "helper name is taken",
    H + "upper = torch.ones(n, n).triu(1).bool()\nreturn y[upper].exp() + _number_in_upper",
    top="_number_in_upper = 3\n_counted_places = 5",
)
_mask("torch is bound below", H + "upper = torch.ones(n, n).triu(1).bool()\nz = y[upper].exp()\nreturn z")
_mask(
    "mask kept on the instance",
    H + "self.mask = torch.ones(n, n).triu(1).bool()\nupper = self.mask\nreturn y[upper].exp()",
)
_mask("the size is of a list", H + "sizes = [1, 2, n]\nkept = torch.arange(n) < sizes[1]\nreturn y[kept]")
_mask("the size is negative", H + "kept = torch.arange(n) < (n - 5)\nreturn y[kept]")
_mask("k negative", H + "k = n - 5\nkept = torch.ones(n, n).triu(k).bool()\nreturn y[kept]")
_mask(
    "k below zero by an argument",
    H + "kept = torch.ones(n, n).triu(k).bool()\nreturn y[kept]",
    args="x: torch.Tensor, k: int = 0",
    inputs=(f"({_X}, -1)", f"({_X}, 1)", f"({_T}, 0)", f"({_T}, True)", f"({_T}, torch.tensor(1))"),
)
_mask(
    "empty",
    H + "kept = torch.ones(n, n).triu(1).bool()\nreturn y[kept].sum()",
    inputs=("torch.ones(0, 3)", "torch.ones(1, 3)", "torch.ones(5, 3)"),
)
_mask(
    "default device",
    H + "kept = torch.ones(n, n).triu(1).bool()\nreturn y[kept].sum()",
    outside="import model, torch\n\ndef make():\n    torch.set_default_dtype(torch.float64)\n    m = model.Model()\n    torch.set_default_dtype(torch.float32)\n    return m\n",
)
_mask(
    "default dtype double",
    H + "kept = torch.arange(n) / 3 == 1 / 3\nreturn y[kept].sum()",
    outside="import model, torch\n\ndef make():\n    m = model.Model()\n    m.register_forward_pre_hook(lambda s, a: torch.set_default_dtype(torch.float64))\n    m.register_forward_hook(lambda s, a, o: torch.set_default_dtype(torch.float32))\n    return m\n",
    varied=False,
)
_mask(
    "inference mode",
    "with torch.inference_mode():\n    n = x.shape[0]\n    kept = torch.ones(n, n).triu(1).bool()\n    return (x @ x.T)[kept], kept.nonzero()",
)
_mask("float condition", H + "kept = torch.arange(n).float().pow(0.5) > 1.2\nreturn y[kept]")
_mask("times a float attribute", H + "kept = torch.arange(n) * self.f > 0.9\nreturn y[kept]", init="self.f = 0.3")
_mask("size of another", H + "kept = torch.arange(y.size(1)) < x.shape[1] - 1\nreturn y[:, kept]")
_mask("mask on two", H + "kept = torch.arange(n) > 0\nreturn y[kept][:, kept]")
_mask("written under it", H + "kept = torch.arange(n) > 0\ny[kept] = y[kept] * 2\nreturn y")
_mask("added under it", H + "kept = torch.arange(n) > 0\ny[kept] += 1\nreturn y")
