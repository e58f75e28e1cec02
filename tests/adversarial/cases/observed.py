"""Ranges that a module observes, and state that grows: what eager mode skips, and what others give or keep."""

from typing import Any

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_N = "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])"
_T = "torch.arange(9.0).reshape(3, 3) - 4"
_INPUTS = (_X, _T, "torch.ones(4, 3) * 2", _N)
_MADE = "import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    {}\n    return made\n"

ranges = Group("observed ranges")
_INIT = """
self.momentum = 0.5
self.register_buffer("low", torch.zeros(1))
self.register_buffer("high", torch.zeros(1))
self.low -= 1e-5
self.high += 1e-5
"""
_BODY = """
low, high = x.detach().min(), x.detach().max()
if self.low.min() > -1e-4 and self.high.max() < 1e-4:
    self.low = self.low + low
    self.high = self.high + high
elif self.momentum == 1:
    self.low = torch.min(self.low, low)
    self.high = torch.max(self.high, high)
else:
    self.low = self.low * self.momentum + low * (1 - self.momentum)
    self.high = self.high * self.momentum + high * (1 - self.momentum)
return (x - self.low) / (self.high - self.low)
"""
_ANNOTATED = "low: torch.Tensor\nhigh: torch.Tensor"


def _range(
    name: str,
    body: str = _BODY,
    init: str = _INIT,
    methods: str = _ANNOTATED,
    inputs: tuple[str, ...] = _INPUTS,
    **options: Any,
) -> None:
    ranges.add(name, body, init=init, methods=methods, inputs=inputs, **options)


_range("plain")
for nm, m in {
    "momentum is a tensor": "made.momentum = torch.tensor(0.25)",
    "momentum is a tensor of two": "made.momentum = torch.tensor([0.25, 1.0])",
    "momentum is True": "made.momentum = True",
    "momentum is None": "made.momentum = None",
    "momentum is a string": "made.momentum = 'a'",
    "momentum is complex": "made.momentum = 0.5j",
    "momentum is numpy": "import numpy\n    made.momentum = numpy.float64(0.25)",
    "low is two": "made.low = torch.zeros(2)",
    "low is of no dimensions": "made.low = torch.tensor(0.0); made.high = torch.tensor(0.0)",
    "low is empty": "made.low = torch.zeros(0)",
    "low is double": "made.low = made.low.double()",
    "low is integers": "made.low = torch.zeros(1, dtype=torch.long); made.high = torch.zeros(1, dtype=torch.long)",
    "low is half": "made.low = made.low.half(); made.high = made.high.bfloat16()",
    "low requires a gradient": "made.low = made.low.requires_grad_()",
    "low is a parameter": "del made.low\n    made.low = torch.nn.Parameter(torch.zeros(1))",
    "low and high are one": "made.low = made.high",
    "low is None": "made.low = None",
    "low is a float": "del made.low\n    made.low = 0.0",
    "a hook halves": "made.register_forward_hook(lambda m, a, o: (o, m.low, m.high))",
    "kept by others": "held = [made.low, made.high]\n    made.register_forward_hook(lambda m, a, o: (o, held))",
}.items():
    _range(nm, outside=_MADE.format(m), varied=False)
_range("given views of the range", "out = self.low\n" + _BODY.replace("return ", "return out, self.low, "))
_range("kept view", _BODY.replace("return ", "self.last = self.low[0]\nreturn self.last, "))
_range("in place later", _BODY.replace("return (", "self.low.mul_(0.5)\nreturn self.low.clone(), ("))
_range("in place before", "self.low.mul_(0.5)\n" + _BODY)
_range("with gradients", _BODY.replace(".detach()", ""))
_range(
    "quantiles",
    _BODY.replace("x.detach().min(), x.detach().max()", "x.detach().quantile(0.1), x.detach().float().quantile(0.9)"),
)
_range("per channel", _BODY.replace("x.detach().min(), x.detach().max()", "x.detach().amin(0), x.detach().amax(0)"))
_range(
    "aminmax", _BODY.replace("low, high = x.detach().min(), x.detach().max()", "low, high = torch.aminmax(x.detach())")
)
_range(
    "division by momentum",
    _BODY.replace("low * (1 - self.momentum)", "low / (1 - self.momentum)"),
    outside=_MADE.format("made.momentum = 1.0"),
)
_range(
    "division by zero of numbers",
    _BODY.replace("low * (1 - self.momentum)", "low * (1 / self.zero)"),
    init=_INIT + "\nself.zero = 0\n",
)
_range(
    "only the first arm raises",
    _BODY.replace("self.low = self.low + low\n", "self.low = self.low + low.view(1, 1)[0]\n"),
)
_range(
    "an arm indexes",
    _BODY.replace("self.low = torch.min(self.low, low)", "self.low = torch.min(self.low, x.detach()[3].min())"),
)
_range(
    "an arm indexes first", _BODY.replace("self.low = self.low + low\n", "self.low = self.low + x.detach()[2].min()\n")
)
_range(
    "no grad",
    "with torch.no_grad():\n" + "\n".join("    " + line for line in _BODY.strip().splitlines()),
    args="x: torch.Tensor",
)
_range(
    "setattr in a subclass",
    files={
        "other.py": "import model\n\nclass Other(model.Model):\n    def __setattr__(self, name: str, value):\n        if name == 'low':\n            self.__dict__.setdefault('seen', []).append(float(value.sum()))\n        super().__setattr__(name, value)\n\n    def forward(self, x):\n        return super().forward(x), len(self.seen)\n"
    },
    make="other.Other()",
    varied=False,
)
_range(
    "property momentum",
    files={
        "other.py": "import model\n\nclass Other(model.Model):\n    n = 0\n    @property\n    def momentum(self):\n        self.n += 1\n        return 1 if self.n % 2 else 0.5\n    @momentum.setter\n    def momentum(self, v):\n        pass\n    def forward(self, x):\n        return super().forward(x), self.n\n"
    },
    make="other.Other()",
    varied=False,
)
_range(
    "deepcopied", outside="import copy, model\n\ndef make():\n    return copy.deepcopy(model.Model())\n", varied=False
)
_range(
    "loaded",
    outside="import model\nimport torch\n\ndef make():\n    m = model.Model()\n    m.load_state_dict({'low': torch.ones(1), 'high': torch.ones(1) * 2})\n    return m\n",
    varied=False,
)
_range(
    "used as weights",
    _BODY + "",
    outside="import model, torch\n\ndef make():\n    m = model.Model()\n    d = m.state_dict()\n    m.register_forward_hook(lambda s, a, o: (o, d['low'] * 1))\n    return m\n",
    varied=False,
)


growing = Group("growing state")
_GI = "self.register_buffer('scale', torch.ones(3), persistent=False)\nself.longest = 3\nself.factor = 1.0\nself.calls = 0"
_GB = "length = torch.max(x)\nif length > self.longest:\n    scale, self.factor = self.scaled(length)\n    self.register_buffer('scale', scale, persistent=False)\n    self.longest = length\nreturn x * self.scale * self.factor, self.calls"


def _growing(
    name: str,
    meth: str = "return torch.ones(3) * length, 1.0",
    body: str = _GB,
    init: str = _GI,
    inputs: tuple[str, ...] = (_N, _X, _T, f"{_X} * 3"),
    **options: Any,
) -> None:
    growing.add(
        name,
        body,
        init=init,
        methods="def scaled(self, length: torch.Tensor):\n" + "\n".join("    " + line for line in meth.split("\n")),
        inputs=inputs,
        **options,
    )


_growing("plain")
_growing("counts its calls", "self.calls += 1\nreturn torch.ones(3) * length, 1.0")
_growing("draws", "return torch.rand(3) * length, 1.0")
_growing("logs", "logger.warning('grown')\nreturn torch.ones(3) * length, 1.0")
_growing(
    "raises for short ones",
    "if self.training:\n    raise ValueError('no')\nreturn torch.ones(3) * length, 1.0",
    inputs=(_N, _N),
)
_growing("another factor", "return torch.ones(3) * length, 2.0", inputs=(_N, _X, _N))
_growing("a factor that counts", "return torch.ones(3) * length, self.factor + 1.0", inputs=(_N, _X, _N))
_growing("reads the data", "return torch.ones(3) * length.item(), 1.0")
_growing("asserts", "assert length > 0\nreturn torch.ones(3) * length, 1.0", inputs=(_N, f"{_N} * 0 - 1", _X))
_growing("writes in place", "self.scale.mul_(2)\nreturn torch.ones(3) * length, 1.0")
_growing("keeps what it made", "self.last = torch.ones(3) * length\nreturn self.last, 1.0")
_growing("longest is None", outside=_MADE.format("made.longest = None"), varied=False)
_growing("longest is a tensor of two", outside=_MADE.format("made.longest = torch.tensor([1., 2.])"), varied=False)
_growing(
    "a function that somebody replaced",
    outside="import torch, model\n\ndef make():\n    m = model.Model()\n    seen = []\n    def f(length):\n        seen.append(1)\n        return torch.ones(3) * length, float(len(seen))\n    m.scaled = f\n    return m\n",
    varied=False,
)
