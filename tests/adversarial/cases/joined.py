"""Writes behind reads that a fix brings into one graph."""

from typing import Any

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_N = "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])"
_T = "torch.arange(9.0).reshape(3, 3) - 4"
_INPUTS = (_X, _T, "torch.ones(4, 3) * 2", _N)
_MADE = "import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    {}\n    return made\n"

joined = Group("joined graphs")
_JI = "self.register_buffer('scale', torch.ones(3))\nself.linear = nn.Linear(3, 3)"


def _join(name: str, body: str, init: str = _JI, inputs: tuple[str, ...] = _INPUTS, **options: Any) -> None:
    joined.add(name, body, init=init, inputs=inputs, **{"varied": False, **options})


IF = "if (x > 99).any():\n    raise ValueError('high')"
_join("plain", f"y = x * self.scale.exp()\n{IF}\nself.scale.mul_(0.9)\nreturn y")
_join("a setter", f"y = x * self.scale.exp()\n{IF}\nself.scale = self.scale * 0.9\nreturn y")
_join(
    "through a module",
    f"y = x * self.part.scale.exp()\n{IF}\nself.part.step()\nreturn y",
    top="class Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('scale', torch.ones(3))\n    def step(self):\n        self.scale.mul_(0.9)",
    init="self.part = Part()",
)
_join(
    "by a forward of a part",
    f"y = x * self.part.scale.exp()\n{IF}\nself.part(x)\nreturn y",
    top="class Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('scale', torch.ones(3))\n    def forward(self, x):\n        self.scale.mul_(0.9)\n        return x",
    init="self.part = Part()",
)
_join(
    "a caller in this file writes",
    "return self.part(x)",
    top="class Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('scale', torch.ones(3))\n    def forward(self, x):\n        y = x * self.scale.exp()\n        if (x > 99).any():\n            raise ValueError('high')\n        return y\n",
    methods="def forward_(self, x):\n    y = self.part(x)\n    self.part.scale.mul_(0.9)\n    return y",
    init="self.part = Part()",
)
_SUB = "import torch\nimport model\n\n\nclass Outer(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.inner = model.Model()\n\n    def forward(self, x):\n        y = self.inner(x)\n        {}\n        return y\n"
for nm, t in {
    "scale.mul_": "self.inner.scale.mul_(0.9)",
    "under no_grad": "with torch.no_grad():\n            self.inner.scale.mul_(0.9)",
    "foreach": "torch._foreach_mul_(list(self.inner.buffers()), 0.9)",
    "for buffers": "for b in self.inner.buffers():\n            b.mul_(0.9)",
    "data": "self.inner.scale.data.mul_(0.9)",
    "data copy": "self.inner.scale.data = self.inner.scale.data * 0.9",
    "copy_": "self.inner.scale.copy_(self.inner.scale * 0.9)",
    "index": "self.inner.scale[0] = 0.5",
    "augmented": "self.inner.scale *= 0.9",
    "the input": "x.detach().mul_(0.9)",
}.items():
    _join(
        f"a caller in another file, {nm}",
        f"y = x * self.scale.exp()\n{IF}\nreturn y * x.exp()",
        files={"outer.py": _SUB.format(t)},
        make="outer.Outer()",
    )
_join(
    "a hook writes",
    f"y = x * self.scale.exp()\n{IF}\nreturn y",
    outside=_MADE.format("made.register_forward_hook(lambda m, a, o: m.scale.mul_(0.9) * 0 + o)"),
)
_join(
    "a hook of the project writes",
    f"y = x * self.scale.exp()\n{IF}\nreturn y",
    files={
        "use.py": "import model\n\n\ndef step(m, a, o):\n    m.scale.mul_(0.9)\n    return o\n\n\ndef make():\n    m = model.Model()\n    m.register_forward_hook(step)\n    return m\n"
    },
    make="use.make()",
)
_join(
    "a subclass writes",
    f"y = x * self.scale.exp()\n{IF}\nreturn y",
    files={
        "other.py": "import model\n\n\nclass Other(model.Model):\n    def forward(self, x):\n        y = super().forward(x)\n        self.scale.mul_(0.9)\n        return y\n"
    },
    make="other.Other()",
)
_join(
    "a list of buffers",
    f"y = x * self.scales[0].exp()\n{IF}\nself.scales[0].mul_(0.9)\nreturn y",
    init="self.scales = [torch.ones(3)]",
)
_join(
    "a dict of buffers",
    f"y = x * self.scales['a'].exp()\n{IF}\nfor k in self.scales:\n    self.scales[k].mul_(0.9)\nreturn y",
    init="self.scales = {'a': torch.ones(3)}",
)
_join("a named local", f"s = self.scale\ny = x * s.exp()\n{IF}\ns.mul_(0.9)\nreturn y")
_join("a view", f"s = self.scale[:]\ny = x * self.scale.exp()\n{IF}\ns.mul_(0.9)\nreturn y")
_join("a getattr", f"y = x * getattr(self, 'scale').exp()\n{IF}\ngetattr(self, 'scale').mul_(0.9)\nreturn y")
_join("a setattr", f"y = x * self.scale.exp()\n{IF}\nself._buffers['scale'].mul_(0.9)\nreturn y")
_join("out", f"y = x * self.scale.exp()\n{IF}\ntorch.mul(self.scale, 0.9, out=self.scale)\nreturn y")
_join("a global", f"y = x * SCALE.exp()\n{IF}\nSCALE.mul_(0.9)\nreturn y", top="SCALE = torch.ones(3)")
_join(
    "a class attribute",
    f"y = x * self.shared.exp()\n{IF}\nself.shared.mul_(0.9)\nreturn y",
    methods="shared = torch.ones(3)",
)
_join("the input itself", f"y = self.linear(x).exp() * x.detach()\n{IF}\nx.data.mul_(0.9)\nreturn y")
_join("the input, saved", f"z = x.detach()\ny = x * z.exp()\n{IF}\nz.mul_(0.5)\nreturn y")
_join(
    "a local that is an input at a break",
    f"h = x * 2\nprint(end='')\nz = h.detach()\ny = h * z.exp()\n{IF}\nz.mul_(0.5)\nreturn y",
)
_join(
    "a local behind an unsupported call",
    f"h = x.detach() * 2\nlogger.info('x %s', float(x.sum()))\ny = x * h.exp()\n{IF}\nh.mul_(0.5)\nreturn y",
)
_join(
    "norm statistics",
    f"y = x * self.norm.running_mean.exp()\n{IF}\nself.norm(x)\nreturn y",
    init="self.norm = nn.BatchNorm1d(3)",
)
_join("ema", f"y = self.linear(x) * self.scale.exp()\n{IF}\nself.scale.lerp_(x.detach().mean(0), 0.1)\nreturn y")
_join("select joined", "y = x * self.scale.exp()\nif x.sum() > 0:\n    y = y * 2\nself.scale.mul_(0.9)\nreturn y")
_join("item joined", "y = x * self.scale.exp()\nn = x.max().item()\ny = y * n\nself.scale.mul_(0.9)\nreturn y")
_join(
    "loop",
    "y = x\nfor _ in range(2):\n    y = y * self.scale.exp()\n    if (y > 999).any():\n        raise ValueError('high')\n    self.scale.mul_(0.9)\nreturn y",
)
_join(
    "a property",
    f"y = x * self.now.exp()\n{IF}\nself.scale.mul_(0.9)\nreturn y",
    methods="@property\ndef now(self):\n    return self.scale",
)
_join(
    "a method's result",
    f"y = x * self.now().exp()\n{IF}\nself.scale.mul_(0.9)\nreturn y",
    methods="def now(self):\n    return self.scale",
)
_join("a closure writes", f"def step():\n    self.scale.mul_(0.9)\ny = x * self.scale.exp()\n{IF}\nstep()\nreturn y")
_join(
    "a callback writes",
    f"y = x * self.scale.exp()\n{IF}\nself.then(self.scale)\nreturn y",
    init=_JI + "\nself.then = lambda t: t.mul_(0.9)",
)
_join(
    "partial writes",
    f"y = x * self.scale.exp()\n{IF}\nself.then()\nreturn y",
    init=_JI + "\nimport functools\nself.then = functools.partial(torch.Tensor.mul_, self.scale, 0.9)",
)
_join("map writes", f"y = x * self.scale.exp()\n{IF}\nlist(map(lambda t: t.mul_(0.9), [self.scale]))\nreturn y")
_join("comprehension writes", f"y = x * self.scale.exp()\n{IF}\n[t.mul_(0.9) for t in (self.scale,)]\nreturn y")
_join("zip writes", f"y = x * self.scale.exp()\n{IF}\nfor t, f in zip([self.scale], [0.9]):\n    t.mul_(f)\nreturn y")
_join(
    "embedding in place",
    f"y = x * self.emb.weight.data[:1].exp().mean()\n{IF}\nself.emb.weight.data.mul_(0.9)\nreturn y",
    init="self.emb = nn.Embedding(3, 3)",
)
