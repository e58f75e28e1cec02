"""What another file does: subclasses, assignments from outside, hooks, callers that catch, TorchScript."""

from tests.adversarial.case import IMPORTS, Group

_TWO = (
    "torch.tensor([[1.0, 2.0, 3.0], [4.0, 0.5, 1.0]])",
    "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])",
    "torch.zeros(2, 3)",
)

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
            inputs=_TWO,
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
            inputs=_TWO,
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
            inputs=_TWO,
            varied=False,
        )

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
        inputs=_TWO,
        varied=False,
    )
    hooks.add(
        f"{name}, in the constructor",
        _LAYERED,
        init="self.norm = nn.LayerNorm(3)\nmade = self\nkept = self.kept = []\n" + hook,
        top="import torch.nn.utils.parametrize",
        inputs=_TWO,
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
            inputs=_TWO,
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
        inputs=_TWO,
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

callers = Group("callers that catch")
_GUARDS = {
    "raise": "if (x < 0).any():\n    raise ValueError('negative')\nreturn x * 2.0",
    "assert": "assert (x >= 0).all(), 'negative'\nreturn x * 2.0",
    "not allclose": "if not torch.allclose(x, x.abs()):\n    raise ValueError('negative')\nreturn x * 2.0",
    "equal": "if not torch.equal(x, x.abs()):\n    raise ValueError('negative')\nreturn x * 2.0",
}
_CATCHES = {
    "try in another file": "try:\n            return self.inner(x)\n        except (ValueError, AssertionError):\n            return x - 1.0",
    "bare except": "try:\n            return self.inner(x)\n        except:\n            return x - 1.0",
    "suppress": "with contextlib.suppress(ValueError, AssertionError):\n            return self.inner(x)\n        return x - 1.0",
    "own context manager": "with Swallow():\n            return self.inner(x)\n        return x - 1.0",
    "generator context manager": "with swallow():\n            return self.inner(x)\n        return x - 1.0",
    "exit stack": "with contextlib.ExitStack() as stack:\n            stack.enter_context(contextlib.suppress(Exception))\n            return self.inner(x)\n        return x - 1.0",
    "finally with return": "try:\n            r = self.inner(x)\n        finally:\n            return x - 1.0",
    "decorator that catches": "return caught(self.inner)(x)",
    "else of try": "try:\n            r = self.inner(x)\n        except Exception as e:\n            return x - len(str(e))\n        else:\n            return r",
}
for guard, body in _GUARDS.items():
    for name, catch in _CATCHES.items():
        callers.add(
            f"{guard}, {name}",
            body,
            files={
                "outer.py": f"""
{IMPORTS}
import model


class Swallow:
    def __enter__(self):
        return self

    def __exit__(self, *found):
        return True


@contextlib.contextmanager
def swallow():
    try:
        yield
    except Exception:
        pass


def caught(function):
    def inner(*args):
        try:
            return function(*args)
        except Exception:
            return args[0] - 1.0
    return inner


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model.Model()

    def forward(self, x):
        {catch}
"""
            },
            make="outer.Outer()",
            inputs=_TWO,
            varied=False,
        )
callers.add(
    "function called under a catch in the same file",
    """
    try:
        return checked(x)
    except ValueError:
        return x - 1.0
    """,
    top="""
    def checked(x: torch.Tensor):
        if (x < 0).any():
            raise ValueError("negative")
        return x * 2.0
    """,
)
callers.add(
    "method called two deep",
    """
    try:
        return self.outer(x)
    except Exception:
        return x - 1.0
    """,
    methods="""
    def outer(self, x):
        return self.inner(x)

    def inner(self, x: torch.Tensor):
        if (x < 0).any():
            raise ValueError("negative")
        return x * 2.0
    """,
)
callers.add(
    "function passed by name to one that catches",
    """
    return attempt(self.inner, x)
    """,
    methods="""
    def inner(self, x: torch.Tensor):
        if (x < 0).any():
            raise ValueError("negative")
        return x * 2.0
    """,
    top="""
    def attempt(function, *args):
        try:
            return function(*args)
        except Exception:
            return args[0] - 1.0
    """,
)
callers.add(
    "state written before the raise",
    """
    self.calls = self.calls + 1
    if (x < 0).any():
        raise ValueError("negative")
    self.good = self.good + 1
    return x * 2.0
    """,
    init="self.calls = 0\nself.good = 0",
)
callers.add(
    "guard in a loop that breaks",
    """
    for row in x:
        if (row < 0).any():
            raise ValueError("negative")
        x = x + row
    return x
    """,
)

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
        inputs=_TWO[:1],
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
        inputs=_TWO[:1],
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
        inputs=_TWO[:1],
        varied=False,
        training=(False,),
    )
    script.whole(
        f"{name}, function with the decorator",
        f"{IMPORTS}\n\n@torch.jit.script\ndef part(x):\n"
        + "".join(f"    {line}\n" for line in body.splitlines())
        + "\n\nclass Model(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return part(x)\n",
        inputs=_TWO[:1],
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
        inputs=_TWO[:1],
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
    inputs=_TWO[:1],
    varied=False,
    training=(False,),
)
script.add(
    "ScriptModule base",
    "y = x\nif bool(x.sum() > 0):\n    y = x * 2.0\nreturn y",
    base="torch.jit.ScriptModule",
    decorator="@torch.jit.script_method",
    inputs=_TWO[:1],
    varied=False,
    training=(False,),
)
script.add(
    "exported method",
    "return self.part(x)",
    methods="@torch.jit.export\ndef part(self, x: torch.Tensor):\n    if x.sum() > 0:\n        return x * 2.0\n    return x",
    inputs=_TWO[:1],
    varied=False,
    training=(False,),
)
