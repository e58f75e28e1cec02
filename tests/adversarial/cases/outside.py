"""Attributes that another file assigns."""

from tests.adversarial.case import IMPORTS, TWO, Group

outside = Group("assigned from outside")

_LAYERED = """
h = self.norm(x)
if h.sum() > 0:
    h = h * 2.0
else:
    h = h + 1.0
return h
"""
_RESULTS = {
    "Identity": "nn.Identity()",
    "a layer that returns a tuple": "Pair()",
    "a layer that returns None": "Nothing()",
    "a layer that returns a Python number": "Number()",
    "a layer that writes in place": "Writing()",
    "a layer that keeps its result": "Keeping()",
    "a layer of another dtype": "nn.LayerNorm(3).double()",
    "a layer that returns integers": "Integers()",
    "a layer that draws": "nn.Dropout(0.5)",
}
_REPLACEMENTS = f"""
{IMPORTS}
class Pair(nn.Module):
    def forward(self, x):
        return x + 1.0


class Nothing(nn.Module):
    def forward(self, x):
        return Total(x)


class Total:
    def __init__(self, x):
        self.x = x

    def sum(self):
        return 1

    def __mul__(self, other):
        return self.x

    def __add__(self, other):
        return self.x


class Number(nn.Module):
    def forward(self, x):
        return np.float32(2.0)


class Writing(nn.Module):
    def forward(self, x):
        return x.add_(1.0) if not x.requires_grad else x


class Keeping(nn.Module):
    def forward(self, x):
        self.kept = x * 2.0
        return self.kept


class Integers(nn.Module):
    def forward(self, x):
        return x.nan_to_num().long()
"""
for name, layer in _RESULTS.items():
    for where in ("file of the project", "code that no tool reads"):
        inside = where.startswith("file")
        change = f"import torch.nn as nn\nimport model\nfrom layers import *\n\n\ndef make():\n    made = model.Model()\n    made.norm = {layer}\n    return made\n"
        outside.add(
            f"{name}, {where}",
            _LAYERED,
            init="self.norm = nn.LayerNorm(3)",
            files={"layers.py": _REPLACEMENTS, **({"use.py": change} if inside else {})},
            outside="import use\nmake = use.make\n" if inside else change,
            inputs=TWO,
            varied=False,
        )
for name, body in {
    "overflow guard": "h = self.norm(x)\nif torch.isinf(h).any():\n    h = torch.clamp(h, -9.0, 9.0)\nreturn h",
    "early return": "h = self.norm(x)\nif h.min() < 0:\n    return h.abs()\nreturn h",
    "masked fill": "h = self.norm(x)\nm = h > 0\nif m.any():\n    h = h.masked_fill(m, 0.0)\nreturn h",
    "guard": "h = self.norm(x)\nif (h > 3).any():\n    raise ValueError('large')\nreturn h",
    "masked rows": "h = self.norm(x)\nm = h > 0\nreturn h[m].sum()",
    "item": "h = self.norm(x)\ns = h.max().item()\nreturn x / s",
    "masked copy": "h = self.norm(x)\ny = torch.zeros_like(h)\nm = h > 0\ny[m] = h[m]\nreturn y",
}.items():
    for layer in ("nn.Identity()", "nn.LayerNorm(3).double()", "layers.Keeping()", "layers.Integers()"):
        outside.add(
            f"{layer} under {name}",
            body,
            init="self.norm = nn.LayerNorm(3)",
            files={
                "layers.py": _REPLACEMENTS,
                "use.py": f"import torch.nn as nn\nimport model\nimport layers\n\n\ndef make():\n    made = model.Model()\n    made.norm = {layer}\n    return made\n",
            },
            make="use.make()",
            inputs=TWO,
            varied=False,
        )
for name, init, change, body in [
    (
        "a float that becomes a tensor",
        "self.scale = 2.0",
        "made.scale = torch.tensor([2.0, 3.0, 4.0])",
        "y = x\nif x.sum() > 0:\n    y = x * self.scale\nreturn y",
    ),
    (
        "a float that becomes inf",
        "self.scale = 2.0",
        "made.scale = float('inf')",
        "y = x\nif x.sum() > 0:\n    y = x * self.scale\nreturn y",
    ),
    (
        "a buffer that becomes double",
        "self.register_buffer('shift', torch.ones(3))",
        "made.shift = torch.ones(3, dtype=torch.float64)",
        "y = x\nif x.sum() > 0:\n    y = x + self.shift\nreturn y",
    ),
    (
        "a buffer that becomes larger",
        "self.register_buffer('shift', torch.ones(3))",
        "made.shift = torch.ones(4, 2, 3)",
        "y = x\nif x.sum() > 0:\n    y = x + self.shift\nreturn y",
    ),
    (
        "a buffer that becomes None",
        "self.register_buffer('shift', torch.ones(3))",
        "made.shift = None",
        "y = x\nif x.sum() > 100:\n    y = x + self.shift\nreturn y",
    ),
    (
        "a parameter frozen",
        "self.weight = nn.Parameter(torch.ones(3))",
        "made.weight.requires_grad_(False)",
        "y = x\nif x.sum() > 0:\n    y = x * self.weight\nreturn y",
    ),
    (
        "a flag set",
        "self.check = False",
        "made.check = True",
        "if self.check and (x < 0).any():\n    raise ValueError('negative')\nreturn x + 1.0",
    ),
    (
        "a flag that becomes a tensor",
        "self.check = False",
        "made.check = torch.tensor(True)",
        "if self.check and (x < 0).any():\n    raise ValueError('negative')\nreturn x + 1.0",
    ),
    (
        "a flag behind the tensor",
        "self.check = True",
        "made.check = torch.tensor(True)",
        "if (x < 0).any() and self.check:\n    raise ValueError('negative')\nreturn x + 1.0",
    ),
    (
        "a method replaced",
        "self.scale = 2.0",
        "made.part = lambda t: t[:1]",
        "if x.sum() > 0:\n    return self.part(x)\nreturn x",
    ),
    (
        "a number of an attribute",
        "self.limit = 1",
        "made.limit = torch.tensor(1.0)",
        "s = x.max().item()\nif s > self.limit:\n    return x / s\nreturn x",
    ),
    (
        "a layer removed",
        "self.norm = nn.LayerNorm(3)",
        "del made.norm",
        "if x.sum() > 100:\n    x = self.norm(x)\nreturn x + 1.0",
    ),
    (
        "a layer of quantized type",
        "self.norm = nn.Linear(3, 3)",
        "made.norm = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))",
        "h = x * 1.0\nif h.sum() > 0:\n    h = torch.relu(h)\nelse:\n    h = h - 1\nreturn self.norm(h)",
    ),
    (
        "weights of half",
        "self.norm = nn.Linear(3, 3)",
        "made.norm.bfloat16()",
        "h = self.norm(x.to(self.norm.weight.dtype))\nif h.sum() > 0:\n    h = h + x\nreturn h",
    ),
    (
        "setattr",
        "self.scale = 2.0",
        "setattr(made, 'scale', torch.ones(2, 3, dtype=torch.int64))",
        "y = x\nif x.sum() > 0:\n    y = x * self.scale\nreturn y",
    ),
    (
        "through __dict__",
        "self.scale = 2.0",
        "vars(made)['scale'] = 1e999",
        "y = x\nif x.sum() > 0:\n    y = x * self.scale\nreturn y",
    ),
    (
        "on the class",
        "self.scale = 2.0",
        "model.Model.forward_scale = 1; made.scale = np.array([1.0, 2.0, 3.0])",
        "y = x\nif x.sum() > 0:\n    y = x * self.scale\nreturn y",
    ),
]:
    change_text = f"import numpy as np\nimport torch\nimport torch.nn as nn\nimport model\n\n\ndef make():\n    made = model.Model()\n    {change}\n    return made\n"
    for inside in (True, False):
        outside.add(
            f"{name}, {'file of the project' if inside else 'unread code'}",
            body,
            init=init,
            methods="def part(self, t):\n    return t * 2.0" if "part" in body else "",
            files={"use.py": change_text} if inside else {},
            outside="import use\nmake = use.make\n" if inside else change_text,
            inputs=TWO,
            varied=False,
        )
