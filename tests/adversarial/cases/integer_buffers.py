"""Integers that a constructor keeps in buffers."""

from tests.adversarial.case import Group

buffers = Group("integer buffers")
_PAD = "return F.pad(x, (self.width, 0))"
for name, extra, files, make in [
    ("plain", "", {}, None),
    ("written by another method", "def widen(self):\n    self.width.add_(1)", {}, "wider(model.Model())"),
    (
        "written from another file",
        "",
        {
            "use.py": "import model\n\n\ndef make():\n    made = model.Model()\n    made.width.fill_(5)\n    return made\n"
        },
        "use.make()",
    ),
    (
        "replaced from another file",
        "",
        {
            "use.py": "import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    made.width = torch.tensor(1)\n    return made\n"
        },
        "use.make()",
    ),
    (
        "attribute changed from another file",
        "",
        {"use.py": "import model\n\n\ndef make():\n    made = model.Model()\n    made.span = 7\n    return made\n"},
        "use.make()",
    ),
    (
        "attribute changed by a subclass",
        "",
        {
            "use.py": "import model\n\n\nclass Child(model.Model):\n    def __init__(self):\n        super().__init__()\n        self.span = 9\n\n\ndef make():\n    return Child()\n"
        },
        "use.make()",
    ),
    (
        "buffer registered anew by a subclass",
        "",
        {
            "use.py": "import torch\nimport model\n\n\nclass Child(model.Model):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('width', torch.tensor(6), persistent=False)\n\n\ndef make():\n    return Child()\n"
        },
        "use.make()",
    ),
    (
        "property by a subclass",
        "",
        {
            "use.py": "import torch\nimport model\n\n\nclass Child(model.Model):\n    def _width_as_int(self):\n        return 'mine'\n\n\ndef make():\n    return Child()\n"
        },
        "use.make()",
    ),
    (
        "loaded by load_state_dict",
        "",
        {
            "use.py": "import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    made._buffers['width'] = torch.tensor(4)\n    return made\n"
        },
        "use.make()",
    ),
    (
        "through buffers()",
        "",
        {
            "use.py": "import model\n\n\ndef make():\n    made = model.Model()\n    for b in made.buffers():\n        b.add_(1)\n    return made\n"
        },
        "use.make()",
    ),
    (
        "double() of the module",
        "",
        {"use.py": "import model\n\n\ndef make():\n    return model.Model().double().float()\n"},
        "use.make()",
    ),
    ("attribute changed in forward", "", {}, None),
]:
    body = _PAD if not name.endswith("in forward") else "self.span = self.span + 1\n" + _PAD
    buffers.add(
        name,
        body,
        init="self.span = 3\nself.register_buffer('width', torch.tensor(self.span, dtype=torch.int64), persistent=False)",
        methods=extra,
        files=files,
        outside=None
        if make is None or make.startswith("use")
        else "import model\n\n\ndef make():\n    made = model.Model()\n    made.widen()\n    return made\n",
        make=make if make and make.startswith("use") else None,
        varied=False,
    )
