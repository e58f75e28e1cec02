"""Modules that are loaded, named or spelled in strange ways."""

from tests.adversarial.case import IMPORTS, Group

_TWO = ("torch.tensor([[1.0, 2.0, 3.0], [4.0, 0.5, 1.0]])", "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])")
_LOOP = """
starts = torch.nonzero(x > 1)
y = torch.zeros(x.shape, dtype=torch.long)
for i in range(starts.shape[0]):
    row, column = starts[i]
    y[row, column:] += 1
return y
"""
_BODIES = {
    "loop": ("return fill(x > 1)", _LOOP.replace("x > 1", "ids").replace("x.shape", "ids.shape")),
    "select": ("if x.sum() > 0:\n    x = x * 2.0\nreturn x", ""),
    "guard": ("if (x > 100).any():\n    raise ValueError('large')\nreturn x * 2.0", ""),
    "log": ("logger.warning('careful')\nreturn x * 2.0", ""),
    "item": ("s = x.max().item()\nreturn x / s", ""),
    "masked": ("m = x > 1\nreturn x[m].sum()", ""),
}


def _text(body: str, function: str) -> str:
    helper = (
        "\n\ndef fill(ids: torch.BoolTensor):\n" + "".join(f"    {line}\n" for line in function.strip().splitlines())
        if function
        else ""
    )
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"{IMPORTS}{helper}\n\nclass Model(nn.Module):\n    def forward(self, x: torch.Tensor):\n{lines}"


names = Group("strange names")
for name, (body, function) in _BODIES.items():
    text = _text(body, function)
    names.whole(
        f"{name}, module with spaces",
        "",
        files={"my model (v2).py": text},
        outside="import importlib.util, sys\nspec = importlib.util.spec_from_file_location('my model (v2)', 'my model (v2).py')\nmodel = importlib.util.module_from_spec(spec)\nsys.modules[spec.name] = model\nspec.loader.exec_module(model)\n\ndef make():\n    return model.Model()\n",
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, not in sys.modules",
        "",
        files={"odd.py": text},
        outside="import importlib.util\nspec = importlib.util.spec_from_file_location('some.where-else', 'odd.py')\nmodel = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(model)\n\ndef make():\n    return model.Model()\n",
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, executed as text",
        "",
        files={"odd.py": text},
        outside="import pathlib\ntext = pathlib.Path('odd.py').read_text()\nnames = {'__name__': '__main__'}\nexec(compile(text, 'odd.py', 'exec'), names)\n\ndef make():\n    return names['Model']()\n",
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, loaded twice",
        "",
        files={"odd.py": text},
        outside="import importlib, sys\nimport odd\nfirst = odd.Model\nsys.modules.pop('odd')\nimport odd as again\n\n\nimport torch.nn as nn\n\n\nclass Both(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a, self.b = first(), again.Model()\n\n    def forward(self, x):\n        return self.a(x), self.b(x)\n\n\ndef make():\n    return Both()\n",
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, reloaded",
        "",
        files={"odd.py": text},
        outside="import importlib\nimport odd\n\ndef make():\n    importlib.reload(odd)\n    return odd.Model()\n",
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, a.b_c and a_b.c",
        "",
        files={
            "a/__init__.py": "",
            "a/b_c.py": text,
            "a_b/__init__.py": "",
            "a_b/c.py": text.replace("+= 1", "+= 5").replace("* 2.0", "* 5.0"),
        },
        outside="import a.b_c, a_b.c\nimport torch.nn as nn\n\n\nclass Both(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a, self.b = a.b_c.Model(), a_b.c.Model()\n\n    def forward(self, x):\n        return self.a(x), self.b(x)\n\n\ndef make():\n    return Both()\n",
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, del torch at the end",
        text + "\n\ndel torch\n" if "torch." not in body and not function else text + "\n\nkept = torch\ndel torch\n",
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, torch by another name",
        text.replace("import torch\n", "import torch as T\n")
        .replace("torch.", "T.")
        .replace("import T.", "import torch."),
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, torch shadowed in the method",
        text.replace(
            "        " + body.splitlines()[0], "        torch = self.shadow\n        " + body.splitlines()[0], 1
        ).replace("class Model(nn.Module):\n", "class Model(nn.Module):\n    shadow = torch\n"),
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, torch shadowed by an argument",
        text.replace("def forward(self, x: torch.Tensor):", "def forward(self, x: torch.Tensor, torch=torch):"),
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, torch imported in the method",
        "import logging\nimport torch.nn as nn\n"
        + text.replace(IMPORTS, "logger = logging.getLogger(__name__)\n")
        .replace(": torch.Tensor", "")
        .replace(": torch.BoolTensor", "")
        .replace("        " + body.splitlines()[0], "        import torch\n\n        " + body.splitlines()[0], 1)
        .replace("def fill(ids):\n", "def fill(ids):\n    import torch\n\n"),
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, is_compiling of its own",
        text.replace(IMPORTS, IMPORTS + "\n\ndef is_compiling():\n    return True\n"),
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, under not is_compiling of its own",
        text.replace(IMPORTS, IMPORTS + "from torch.compiler import is_compiling\n").replace(
            "        " + body.splitlines()[0],
            "        if not is_compiling():\n            x = x * 1.0\n        " + body.splitlines()[0],
            1,
        ),
        inputs=_TWO,
        varied=False,
    )
    names.whole(f"{name}, tabs and CRLF", text.replace("    ", "\t").replace("\n", "\r\n"), inputs=_TWO, varied=False)
    names.whole(f"{name}, byte order mark", "\ufeff" + text, inputs=_TWO, varied=False)
    names.whole(
        f"{name}, future annotations and a docstring",
        '"""Doc."""\nfrom __future__ import annotations\n' + text,
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, __slots__ and metaclass",
        text.replace(
            "class Model(nn.Module):\n",
            "class Meta(type):\n    def __call__(cls, *args):\n        made = super().__call__(*args)\n        made.eval()\n        return made\n\n\nclass Model(nn.Module, metaclass=Meta):\n    __slots__ = ()\n\n",
        ),
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, class in a function",
        text.replace(
            "class Model(nn.Module):\n    def forward(self, x: torch.Tensor):\n",
            "def Model():\n    class Inner(nn.Module):\n        def forward(self, x: torch.Tensor):\n",
        ).replace("        " + body.splitlines()[0], "    " + "        " + body.splitlines()[0])
        if len(body.splitlines()) == 1
        else text,
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, decorated by functools.wraps",
        text.replace(
            "class Model(nn.Module):\n",
            "import functools\n\n\ndef twice(function):\n    @functools.wraps(function)\n    def inner(self, x):\n        function(self, x)\n        return function(self, x)\n    return inner\n\n\nclass Model(nn.Module):\n    @twice\n",
        ),
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, compiled inside already",
        text.replace("class Model(nn.Module):\n", "class Model(nn.Module):\n    @torch.compiler.disable\n"),
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, functional_call and vmap",
        text,
        outside="import model\nimport torch\n\n\ndef make():\n    made = model.Model()\n    return lambda x: torch.func.functional_call(made, {}, (x,))\n",
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, deepcopy",
        text,
        outside="import copy\nimport model\n\n\ndef make():\n    return copy.deepcopy(model.Model())\n",
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, pickled",
        text,
        outside="import pickle\nimport model\n\n\ndef make():\n    return pickle.loads(pickle.dumps(model.Model()))\n",
        inputs=_TWO,
        varied=False,
    )
    names.whole(
        f"{name}, inspect.getsource asked",
        text.replace(
            "class Model(nn.Module):\n",
            "class Model(nn.Module):\n    def names(self):\n        return list(self.forward.__code__.co_varnames)[:2]\n\n",
        ),
        inputs=_TWO,
        varied=False,
    )
