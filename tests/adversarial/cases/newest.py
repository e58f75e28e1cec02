"""The newest forms, each against the same attacks: subclasses, assignments, hooks, dtypes, modes, scripts."""

from typing import Any

from tests.adversarial.case import IMPORTS, Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_N = "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])"
_THREE = "torch.arange(9.0).reshape(3, 3) - 4"
_QUEUE = """
self.size = 4
self.register_buffer("queue", torch.zeros(4, 3))
self.register_buffer("at", torch.zeros(1, dtype=torch.long))
"""

SITES: dict[str, dict[str, Any]] = {
    "queue": {
        "init": _QUEUE,
        "body": """
        n = x.shape[0]
        at = int(self.at)
        with torch.no_grad():
            if at + n >= self.size:
                self.queue[at:] = x[: self.size - at]
                self.at.zero_()
            else:
                self.queue[at : at + n] = x
                self.at[0] = at + n
        return self.queue.clone() + x.sum()
        """,
        "inputs": (_X, _THREE, _N, _X),
        "attributes": {"size": "4", "queue": "self._buffers['queue']", "at": "self._buffers['at']"},
    },
    "wrapped queue": {
        "init": _QUEUE,
        "methods": """
        @torch.no_grad()
        def push(self, keys):
            n = keys.shape[0]
            at = int(self.at)
            if at + n > self.size:
                over = at + n - self.size
                self.queue[at:] = keys[: n - over]
                self.queue[:over] = keys[n - over :]
            else:
                self.queue[at : at + n] = keys
            self.at[0] = (at + n) % self.size
        """,
        "body": "self.push(x)\nreturn self.queue.clone() + x.sum()",
        "inputs": (_X, _THREE, _N, _X),
        "attributes": {"size": "4", "queue": "self._buffers['queue']", "at": "self._buffers['at']"},
    },
    "listed numbers": {
        "init": "self.sizes = [2, 3]\nself.linear = nn.Linear(3, 3)",
        "body": """
        t = torch.tensor(self.sizes)
        n = int(t.max())
        return self.linear(x) * torch.arange(n).sum() + t.sum().item()
        """,
        "inputs": (_X, _THREE),
        "attributes": {"sizes": "[2, 3]"},
    },
    "array test": {
        "init": "self.patch = 2\nself.sizes = (4, 6)",
        "body": """
        size = np.array(x.shape)
        if (size % self.patch > 0).any():
            x = x + 1
        if np.any(np.array(self.sizes) * 2 // self.patch != np.array(self.sizes)):
            x = x * 2
        return x
        """,
        "inputs": (_X, _THREE, "torch.ones(2, 4)"),
        "attributes": {"patch": "2", "sizes": "(4, 6)"},
    },
    "flag": {
        "init": "self.scale = nn.Parameter(torch.ones(3), requires_grad=False)\nself.linear = nn.Linear(3, 3)",
        "body": """
        self.scale.requires_grad = False
        h = self.linear(x)
        return h * self.scale
        """,
        "inputs": (_X, _N),
        "attributes": {"scale": "self._parameters['scale']"},
    },
    "constant leaf": {
        "body": """
        total = torch.tensor(0.0, requires_grad=True, device=x.device)
        total = total + x.sum()
        return x * total
        """,
        "inputs": (_X, _N),
    },
    "leaf like": {
        "body": "nothing = torch.zeros_like(x).requires_grad_()\nreturn x + nothing * 2",
        "inputs": (_X, _N),
    },
    "copy under a view of a mask": {
        "body": """
        mask = x[None] > 0
        y = torch.zeros_like(x)
        y[mask.view(x.shape[0], -1)] = x[mask.view(x.shape[0], -1)]
        return y
        """,
        "inputs": (_X, _THREE),
    },
    "copy of given": {
        "args": "y, x, mask",
        "body": "y[mask] = x[mask]\nreturn y * 2",
        "inputs": (f"(torch.zeros(2, 3), {_X}, {_X} > 0)", f"(torch.zeros(3, 3), {_THREE}, {_THREE} > 0)"),
    },
    "number in an expression": {
        "init": "self.register_buffer('top', torch.tensor(2.0))\nself.weight = nn.Parameter(torch.ones(3))",
        "body": """
        y = x / max((x > 0).sum().item(), 1) * self.top.item()
        y = torch.clamp(y, x.mean().item(), self.top.item()) * self.weight
        y = y * y.amax().item() + x
        with torch.no_grad():
            self.top.add_(1)
        return y
        """,
        "inputs": (_X, _THREE, _N),
        "attributes": {"top": "self._buffers['top']", "weight": "self._parameters['weight']"},
    },
    "chosen number": {
        "body": """
        scale = 1.0 if x.max() <= 1.0 else 255.0
        shift = 0.1
        if (x < 0).any():
            shift = -3
        return x / scale + shift * x
        """,
        "inputs": (_X, _THREE, _N),
    },
    "chosen exception": {
        "init": "self.strict = True\nself.limit = 1000",
        "body": """
        if (x > self.limit).any():
            if not self.strict:
                warnings.warn("large")
            elif self.training:
                raise ValueError("too large")
            else:
                logger.error("too large")
                raise TypeError("too large, not training")
        return x * 2
        """,
        "inputs": (_X, _THREE, f"{_X} * 999", _N),
        "attributes": {"strict": "True", "limit": "1000"},
    },
    "clamp": {
        "init": "self.norm = nn.LayerNorm(3)",
        "body": """
        h = self.norm(x)
        h = x + h
        if torch.isinf(h).any() or torch.isnan(h).any():
            limit = torch.finfo(h.dtype).max - 1000
            h = torch.clamp(h, min=-limit, max=limit)
        return h
        """,
        "inputs": (_X, "torch.tensor([[float('inf'), 1.0, 2.0]])", "torch.tensor([[float('nan'), 1.0, 2.0]])"),
        "attributes": {"norm": "self._modules['norm']"},
    },
    "element": {
        "body": "best = x.mean(0).argmax()\nreturn x * x[:, best].relu().unsqueeze(1)",
        "inputs": (_X, _THREE),
    },
    "rolled": {
        "args": "x, t",
        "body": "return torch.roll(x, -int(t[0]), -1) * 2",
        "inputs": (f"({_X}, torch.tensor([2, 1]))", f"({_THREE}, torch.tensor([-8, 1]))"),
    },
    "classes": {
        "args": "x, t",
        "init": "self.n = 3",
        "body": "n = max(t.max() + 1, self.n)\nreturn F.one_hot(t, n)[..., : self.n] * x.sum()",
        "inputs": (f"({_X}, torch.tensor([2, 1]))", f"({_THREE}, torch.tensor([[7, 0]]))"),
        "attributes": {"n": "3"},
    },
    "lengths": {
        "args": "x, lengths",
        "body": """
        mask = torch.zeros(x.shape[0], x.shape[1])
        for i, length in enumerate(lengths):
            mask[i, :length] = 1
        return x * mask
        """,
        "inputs": (f"({_X}, torch.tensor([2, 0]))", f"({_THREE}, torch.tensor([-1, 9, 3]))"),
    },
    "masked sum": {
        "body": "mask = x > 0\nreturn x[mask].sum() + x[mask].mean()",
        "inputs": (_X, _N),
    },
    "masked sum of given": {
        "args": "x, mask",
        "body": "return x[mask].mean()",
        "inputs": (f"({_X}, {_X} > 0)", f"({_X}, torch.tensor([True, False]))"),
    },
    "rows": {
        "args": "x, mask",
        "body": "y = torch.zeros_like(x)\ny[mask] = torch.tanh(x[mask] * 2.0)\nreturn y",
        "inputs": (f"({_X}, {_X} > 0)", f"({_X}, torch.tensor([True, False]))", f"({_N}, {_N} > 99)"),
    },
    "rows of a loss": {
        "args": "x, mask",
        "body": "return F.mse_loss(x[mask], x[mask] * 2.0 + 1)",
        "inputs": (f"({_X}, {_X} > 0)", f"({_X}, torch.tensor([True, False]))", f"({_N}, {_N} > 99)"),
    },
    "early return": {
        "init": "self.linear = nn.Linear(3, 3)",
        "body": """
        h = self.linear(x)
        if x.sum() > 0:
            return h
        h = h * 2
        scale = h.abs().mean() + 1
        return h / scale
        """,
        "inputs": (_X, _N, "torch.zeros(2, 3)"),
        "attributes": {"linear": "self._modules['linear']"},
    },
    "mask or none": {
        "top": """
        class Part(nn.Module):
            def __init__(self):
                super().__init__()
                self.proj = nn.Linear(3, 3)

            def forward(self, x, mask=None):
                x = self.proj(x)
                if mask is not None:
                    x = x * mask[:, :, None]
                return torch.cumsum(x, dim=1)
        """,
        "init": "self.part = Part()",
        "args": "x: torch.Tensor, mask=None, positions=None",
        "body": """
        if positions is None:
            positions = torch.arange(x.shape[1])
        kept = mask
        if positions[0] > 0 or (mask is not None and torch.all(mask == 1)):
            kept = None
        return self.part(x, kept)
        """,
        "inputs": (
            "(torch.ones(2, 2, 3), torch.ones(2, 2, dtype=torch.long))",
            "(torch.ones(2, 2, 3), torch.tensor([[0, 1], [1, 1]]))",
            "(torch.ones(2, 2, 3), torch.tensor([[0, 1], [1, 1]]), torch.arange(3, 5))",
        ),
        "attributes": {"part": "self._modules['part']"},
    },
    "own gradient": {
        "init": "self.net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())",
        "body": """
        with torch.enable_grad():
            x = x.clone().requires_grad_()
            y = self.net(x)
        slope = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]
        return y, slope
        """,
        "inputs": (_X, _THREE),
        "attributes": {"net": "self._modules['net']"},
    },
}

_SUBCLASS = """\
import model


class Other(model.Model):
    asked = 0
"""
_PROPERTY = """
    @property
    def {name}(self):
        Other.asked += 1
        if Other.asked > 50:
            return None
        try:
            return {value}
        except KeyError:  # what registers a buffer asks whether there is such an attribute
            raise AttributeError("{name}") from None

    @{name}.setter
    def {name}(self, value):
        self.__dict__["_kept_{name}"] = value
"""
_SHOWN = """
    def forward(self, *args):
        found = super().forward(*args)
        return found, Other.asked
"""
_OUTER = """\
import torch
from torch import nn

import model


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model.Model()

    def forward(self, *args):
        {body}
"""
_MODES = {
    "autocast": 'with torch.autocast("cpu", dtype=torch.bfloat16):\n            return self.inner(*args)',
    "half autocast": 'with torch.autocast("cpu", dtype=torch.float16):\n            return self.inner(*args)',
    "gradients off by a statement": "torch.set_grad_enabled(False)\n        found = self.inner(*args)\n"
    "        torch.set_grad_enabled(True)\n        return found",
    "gradients on by a statement": "before = torch.is_grad_enabled()\n        torch.set_grad_enabled(True)\n"
    "        found = self.inner(*args)\n        torch.set_grad_enabled(before)\n        return found",
    "written later": "found = self.inner(*args)\n        for each in args[:1]:\n            each.data.add_(1)\n"
    "        return found",
    "twice": "return self.inner(*args), self.inner(*args)",
    "given views": "args = [each[:] if isinstance(each, torch.Tensor) and each.dim() else each for each in args]\n"
    "        return self.inner(*args), args",
    "given turned": "args = [each.mT.contiguous().mT if isinstance(each, torch.Tensor) and each.dim() > 1 else each"
    " for each in args]\n        return self.inner(*args), args",
}
_GIVEN = ("float64", "float16", "bfloat16", "int64", "uint8", "complex64", "empty", "expanded", "column")

newest = Group("newest forms")
for _name, _site in SITES.items():
    _common = {key: value for key, value in _site.items() if key in {"init", "methods", "body", "args", "top"}}
    _inputs = _site["inputs"]
    newest.add(_name, inputs=_inputs, **_common)
    newest.add(
        f"{_name}, given otherwise",
        inputs=tuple(f"{kind}@ {each}" for kind in _GIVEN for each in _inputs[:2]),
        varied=False,
        **_common,
    )
    for _mode, _text in _MODES.items():
        newest.add(
            f"{_name}, {_mode}",
            files={"outer.py": _OUTER.format(body=_text)},
            make="outer.Outer()",
            inputs=_inputs,
            varied=False,
            **_common,
        )
    if _site.get("attributes"):
        _members = "".join(_PROPERTY.format(name=name, value=value) for name, value in _site["attributes"].items())
        newest.add(
            f"{_name}, properties in another file",
            files={"other.py": _SUBCLASS + _members + _SHOWN},
            make="other.Other()",
            inputs=_inputs,
            varied=False,
            **_common,
        )
    newest.add(
        f"{_name}, scripted elsewhere",
        files={"use.py": f"{IMPORTS}\nimport model\n\n\ndef scripted():\n    return torch.jit.script(model.Model())\n"},
        outside="import torch.jit\nimport model\n\n\ndef make():\n    return model.Model()\n",
        inputs=_inputs,
        varied=False,
        **_common,
    )
    newest.add(
        f"{_name}, hooks",
        files={
            "use.py": "import torch\nimport model\n\n\ndef made():\n    made = model.Model()\n"
            "    for part in made.modules():\n"
            "        part.register_forward_pre_hook(lambda m, a: (a[0].double().float(), *a[1:]))\n"
            "        part.register_forward_hook(lambda m, a, r: r * 2.0 if isinstance(r, torch.Tensor) else None)\n"
            "    return made\n"
        },
        make="use.made()",
        inputs=_inputs,
        varied=False,
        **_common,
    )
