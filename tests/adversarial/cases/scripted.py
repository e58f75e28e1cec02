"""Functions that TorchScript compiles as well."""

from tests.adversarial.case import IMPORTS, TWO, Group

script = Group("TorchScript")
_SCRIPTED = {
    "select": "y = x\nif bool(x.sum() > 0):\n    y = x * 2.0\nreturn y",
    "plain if": "y = x\nif x.sum() > 0:\n    y = x * 2.0\nreturn y",
    "return": "if x.sum() > 0:\n    return x * 2.0\nreturn x - 1.0",
    "item": "s = x.max().item()\nreturn x / s",
    "float": "s = float(x.max())\nreturn x / s",
    "flag": "flag = bool((x > 0).any())\nif flag:\n    x = x * 2.0\nreturn x",
    "guard": "if (x < 0).any():\n    raise ValueError('negative')\nreturn x * 2.0",
    "assert": "assert bool((x >= 0).all()), 'negative'\nreturn x * 2.0",
    "masked rows": "m = x > 0\nreturn x[m].sum()",
    "masked copy": "y = torch.zeros_like(x)\nm = x > 0\ny[m] = x[m]\nreturn y",
    "overflow": "if torch.isinf(x).any():\n    x = torch.clamp(x, -1.0, 1.0)\nreturn x",
    "masked fill": "m = x > 1\nif m.any():\n    x = x.masked_fill(m, 0.0)\nreturn x",
    "print": "print('mean')\nreturn x",
    "warning": "warnings.warn('careful')\nreturn x * 2.0",
    "list": "s = torch.tensor([2, 3])\nreturn x.view(s.tolist()[0], 3)",
    "places": "ids = (x > 0).long()\nends = torch.zeros(2, dtype=torch.long)\nrows, columns = torch.where(ids == 1)\nends[rows] = columns\nreturn ends",
    "rows filled": "lengths = (x > 0).sum(1)\nmask = torch.zeros(2, 3)\nfor i in range(len(lengths)):\n    mask[i, : int(lengths[i])] = 1\nreturn mask",
    "loop over chosen": "starts = torch.nonzero(x > 0)\ny = torch.zeros(2, 3)\nfor i in range(starts.shape[0]):\n    row, column = starts[i][0], starts[i][1]\n    y[row, column:] += 1\nreturn y",
    "mask product": "m = x > 0\nif not m.all():\n    x = x * m\nreturn x",
    "range": "n = x.shape[0]\nif torch.div(n, 2, rounding_mode='floor') > 0:\n    return x\nreturn x + 1",
}
for name, body in _SCRIPTED.items():
    script.add(
        f"{name}, scripted by the user alone",
        body,
        args="self, x: torch.Tensor"[6:],
        inputs=TWO[:1],
        varied=False,
        training=(False,),
    )
    script.add(
        f"{name}, scripted in another file",
        body,
        files={
            "export.py": "import torch\nimport model\n\n\ndef make():\n    return torch.jit.script(model.Model().eval())\n"
        },
        make="export.make()",
        inputs=TWO[:1],
        varied=False,
        training=(False,),
    )
    script.add(
        f"{name}, part of a scripted module of another file",
        body,
        files={
            "outer.py": "import torch\nimport torch.nn as nn\nfrom model import Model\n\n\nclass Outer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.inner = Model()\n\n    def forward(self, x):\n        return self.inner(x)\n",
            "export.py": "import torch\nfrom outer import Outer\n\nscript = torch.jit.script\n\n\ndef make():\n    return script(Outer().eval())\n",
        },
        make="export.make()",
        inputs=TWO[:1],
        varied=False,
        training=(False,),
    )
    script.whole(
        f"{name}, function with the decorator",
        f"{IMPORTS}\n\n@torch.jit.script\ndef part(x):\n"
        + "".join(f"    {line}\n" for line in body.splitlines())
        + "\n\nclass Model(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return part(x)\n",
        inputs=TWO[:1],
        varied=False,
        training=(False,),
    )
    script.whole(
        f"{name}, function scripted from another file",
        f"{IMPORTS}\n\ndef part(x: torch.Tensor):\n"
        + "".join(f"    {line}\n" for line in body.splitlines())
        + "\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.run = part\n\n    def forward(self, x: torch.Tensor):\n        return part(x)\n",
        files={
            "export.py": "import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    model.part = torch.jit.script(model.part)\n    return made\n"
        },
        make="export.make()",
        inputs=TWO[:1],
        varied=False,
        training=(False,),
    )
script.add(
    "traced in another file",
    "y = x\nif x.sum() > 0:\n    y = x * 2.0\nreturn y",
    files={
        "export.py": "import torch\nimport model\n\n\ndef make():\n    return torch.jit.trace(model.Model().eval(), torch.ones(2, 3))\n"
    },
    make="export.make()",
    inputs=TWO[:1],
    varied=False,
    training=(False,),
)
script.add(
    "ScriptModule base",
    "y = x\nif bool(x.sum() > 0):\n    y = x * 2.0\nreturn y",
    base="torch.jit.ScriptModule",
    decorator="@torch.jit.script_method",
    inputs=TWO[:1],
    varied=False,
    training=(False,),
)
script.add(
    "exported method",
    "return self.part(x)",
    methods="@torch.jit.export\ndef part(self, x: torch.Tensor):\n    if x.sum() > 0:\n        return x * 2.0\n    return x",
    inputs=TWO[:1],
    varied=False,
    training=(False,),
)
