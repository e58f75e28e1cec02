"""Hooks, and subclasses in another file."""

from tests.adversarial.case import TWO, Group

_LAYERED = """
h = self.norm(x)
if h.sum() > 0:
    h = h * 2.0
else:
    h = h + 1.0
return h
"""

hooks = Group("hooks")
for name, hook in {
    "forward hook keeps the result": "made.norm.register_forward_hook(lambda m, a, r: kept.append(r))",
    "forward hook changes the result": "made.norm.register_forward_hook(lambda m, a, r: r[:1])",
    "forward hook writes into the result": "made.norm.register_forward_hook(lambda m, a, r: r.mul_(2.0))",
    "forward hook returns integers": "made.norm.register_forward_hook(lambda m, a, r: r.nan_to_num().long())",
    "pre hook changes the input": "made.norm.register_forward_pre_hook(lambda m, a: (a[0] * 2.0,))",
    "pre hook of the model": "made.register_forward_pre_hook(lambda m, a: (a[0].double().float(),))",
    "hook of the model": "made.register_forward_hook(lambda m, a, r: r * 3.0)",
    "backward hook": "made.norm.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2.0,) if gi[0] is not None else None)",
    "global hook": "nn.modules.module.register_module_forward_hook(lambda m, a, r: r * 2.0 if isinstance(m, nn.LayerNorm) else None)",
    "parametrization": "nn.utils.parametrize.register_parametrization(made.norm, 'weight', nn.Sigmoid())",
    "spectral norm": "made.norm.weight = None",
}.items():
    text = f"import torch.nn as nn\nimport torch.nn.utils.parametrize\nimport model\n\nkept = []\n\n\ndef make():\n    made = model.Model()\n    {hook}\n    return made\n"
    hooks.add(
        name,
        _LAYERED,
        init="self.norm = nn.LayerNorm(3)",
        files={"use.py": text},
        make="use.make()",
        inputs=TWO,
        varied=False,
    )
    hooks.add(
        f"{name}, in the constructor",
        _LAYERED,
        init="self.norm = nn.LayerNorm(3)\nmade = self\nkept = self.kept = []\n" + hook,
        top="import torch.nn.utils.parametrize",
        inputs=TWO,
        varied=False,
    )
hooks.add(
    "tensor hook on what is selected",
    """
    h = self.norm(x)
    if h.requires_grad:
        h.register_hook(self.seen.append)
    if h.sum() > 0:
        h = h * 2.0
    return h
    """,
    init="self.norm = nn.LayerNorm(3)\nself.seen = []",
)
hooks.add(
    "submodule call that writes an attribute of the parent",
    """
    h = self.part(x, self)
    if self.flag.any():
        h = h + 1.0
    return h
    """,
    init="self.part = Part()\nself.flag = torch.tensor(False)",
    top="""
    class Part(nn.Module):
        def forward(self, x, owner):
            owner.flag = x > 2
            return x * 2.0
    """,
)

subclasses = Group("subclass in another file")
for name, method, override in [
    ("of a helper's result dtype", "return x * 2.0", "return x.double()"),
    ("of a helper's result shape", "return x * 2.0", "return x[:, :1]"),
    ("of a helper that writes", "return x * 2.0", "return x.mul_(2.0)"),
    ("of a helper that raises", "return x * 2.0", "raise KeyError('no')"),
    ("of a helper that draws", "return x * 2.0", "return x + torch.rand(3)"),
    ("of a helper that prints", "return x * 2.0", "print('called')\n        return x"),
    ("of a helper that returns None", "return x * 2.0", "return None"),
    ("of a helper that returns its argument", "return x * 2.0", "return x"),
    ("of a helper that counts", "return x * 2.0", "self.count = getattr(self, 'count', 0) + 1\n        return x"),
]:
    for form, body in {
        "select": "y = self.part(x)\nz = x + 1.0\nif x.sum() > 0:\n    z = y\nreturn z",
        "call in an arm": "if x.sum() > 0:\n    return self.part(x)\nreturn x - 1.0",
        "behind": "y = self.part(x)\nif y.sum() > 0:\n    y = y + 1.0\nelse:\n    y = y - 1.0\nreturn y",
    }.items():
        subclasses.add(
            f"{name}, {form}",
            body,
            methods=f"def part(self, x: torch.Tensor) -> torch.Tensor:\n    {method}",
            files={
                "child.py": f"import torch\nimport model\n\n\nclass Child(model.Model):\n    def part(self, x):\n        {override}\n"
            },
            make="child.Child()",
            inputs=TWO,
            varied=False,
        )
for name, init, child, body in [
    (
        "layer replaced",
        "self.norm = nn.LayerNorm(3)",
        "super().__init__()\n        self.norm = nn.Identity()",
        _LAYERED,
    ),
    (
        "layer replaced by one in place",
        "self.act = nn.ReLU()",
        "super().__init__()\n        self.act = nn.ReLU(inplace=True)",
        "h = x * 1.0\nif h.sum() > 0:\n    y = self.act(h)\nelse:\n    y = h\nreturn y, h",
    ),
    (
        "buffer of another dtype",
        "self.register_buffer('shift', torch.ones(3))",
        "super().__init__()\n        self.register_buffer('shift', torch.ones(3, dtype=torch.float64))",
        "y = x\nif x.sum() > 0:\n    y = x + self.shift\nreturn y",
    ),
    (
        "number replaced by a tensor",
        "self.limit = 3.0",
        "super().__init__()\n        self.limit = torch.tensor(3.0)",
        "m = x.max().item()\nif m > self.limit:\n    return x / m\nreturn x",
    ),
    (
        "integer replaced by a float",
        "self.width = 3",
        "super().__init__()\n        self.width = 3.0",
        "p = torch.arange(0, self.width)\nif p[0] > 0:\n    return x\nreturn x + 1",
    ),
]:
    subclasses.add(
        f"constructor, {name}",
        body,
        init=init,
        files={
            "child.py": f"import torch\nimport torch.nn as nn\nimport model\n\n\nclass Child(model.Model):\n    def __init__(self):\n        {child}\n"
        },
        make="child.Child()",
        inputs=TWO,
        varied=False,
    )
subclasses.add(
    "property with effects overrides an attribute",
    """
    y = x
    if x.sum() > 0:
        y = x * self.scale
    return y
    """,
    init="self.factor = 2.0",
    methods="@property\ndef scale(self):\n    return 2.0",
    files={
        "child.py": "import model\n\n\nclass Child(model.Model):\n    @property\n    def scale(self):\n        self.factor += 1.0\n        return self.factor\n"
    },
    make="child.Child()",
    varied=False,
)
subclasses.add(
    "super call and catch",
    """
    if (x < 0).any():
        raise ValueError("negative")
    return x * 2.0
    """,
    files={
        "child.py": "import model\n\n\nclass Child(model.Model):\n    def forward(self, x):\n        try:\n            return super().forward(x)\n        except ValueError:\n            return x * 0\n"
    },
    make="child.Child()",
)
subclasses.add(
    "__getattr__ of a subclass",
    """
    y = x
    if x.sum() > 0:
        y = x * self.scale
    return y
    """,
    init="self.width = 3",
    files={
        "child.py": "import torch\nimport model\n\n\nclass Child(model.Model):\n    def __getattr__(self, name):\n        if name == 'scale':\n            return torch.tensor([1.0, 2.0, float('inf')])\n        return super().__getattr__(name)\n"
    },
    make="child.Child()",
    varied=False,
)
subclasses.add(
    "__call__ of a subclass that catches",
    """
    assert (x >= 0).all(), "negative"
    return x * 2.0
    """,
    files={
        "child.py": "import model\n\n\nclass Child(model.Model):\n    def __call__(self, *args):\n        try:\n            return super().__call__(*args)\n        except AssertionError:\n            return None\n"
    },
    make="child.Child()",
)
