"""What few modules attacked: set-ups, masks that may be None, ranges, tables cut to a maximum, methods of experts.

Compiled, none is different but for `set up once: counts calls`, whose numbers a page tells of.
"""

from typing import Any

from tests.adversarial.case import Group

once = Group("set up once")
masked = Group("mask or none")
tables = Group("ranges and tables")
experts = Group("experts with methods")
X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
Y = "torch.ones(3, 3)"


# GM603
_TOP = """
import threading
_lock = threading.Lock()
def tell(layer, given, result):
    return result * 2
{more}
def install(model):
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            {what}
    setattr(model, "_installed", True)
def maybe_install(model):
    if getattr(model, "_installed", False):
        return
    with _lock:
        if getattr(model, "_installed", False):
            return
        install(model)
"""
_WHAT = "layer.register_forward_hook(tell)"
_INIT = "self.first = nn.Linear(3, 3)\nself.last = nn.Linear(3, 3)"
_BODY = "maybe_install(self)\nreturn self.last(self.first(x))"


def _o(name: str, body: str = _BODY, what: str = _WHAT, more: str = "", **kw: Any) -> None:
    kw = {"init": _INIT, "inputs": (X, Y, X), "varied": False, "top": _TOP.format(what=what, more=more), **kw}
    once.add(name, body, **kw)


_o("plain")
_o("in the middle", "y = self.first(x)\nmaybe_install(self)\nreturn self.last(y) + self.first(x)")
_o("in a branch of shape", "if x.shape[0] > 2:\n    maybe_install(self)\nreturn self.last(self.first(x))")
_o("in a loop", "for _ in range(2):\n    maybe_install(self)\nreturn self.last(self.first(x))")
_o(
    "the flag is read below",
    "maybe_install(self)\ny = self.last(self.first(x))\nreturn y * 2 if self._installed else y",
)
_o(
    "the flag is read above",
    "y = 3 if getattr(self, '_installed', False) else 2\nmaybe_install(self)\nreturn self.last(self.first(x)) * y",
)
_o(
    "hook with a counter",
    what="layer.register_forward_hook(count)",
    more="COUNT = []\ndef count(layer, given, result):\n    COUNT.append(1)\n    return result + len(COUNT)",
)
_o(
    "a new parameter",
    what="layer.extra = nn.Parameter(torch.ones(3)); layer.register_forward_hook(lambda l, g, r: r + l.extra)",
)
_o(
    "reset between calls",
    inputs=(f"between(({X},))", f"between(({Y},))", f"between(({X},))"),
    outside="import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    def between(given):\n        made._installed = False\n        return given\n    model.between = between\n    return made\n",
)
_o(
    "two models",
    outside="import torch\nfrom torch import nn\nimport model\n\n\nclass Two(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a, self.b = model.Model(), model.Model()\n\n    def forward(self, x):\n        return self.b(self.a(x)) + self.a(x)\n\n\ndef make():\n    return Two()\n",
)
_o(
    "a subclass elsewhere has a property",
    files={
        "other.py": "import model\n\n\nclass Other(model.Model):\n    asked = 0\n\n    @property\n    def _installed(self):\n        type(self).asked += 1\n        return type(self).asked > 2\n\n    @_installed.setter\n    def _installed(self, value):\n        pass\n"
    },
    make="other.Other()",
)
_o(
    "another file replaces it",
    files={
        "other.py": "import model\n\n\ndef nothing(made):\n    made.seen = True\n\n\nmodel.maybe_install = nothing\n"
    },
)
_o(
    "raises and is caught",
    "try:\n    maybe_install(self)\nexcept ValueError:\n    return x\nreturn self.last(self.first(x))",
    what="layer.register_forward_hook(tell); raise ValueError('no')",
)
_o(
    "reads the input's shape",
    "self.size = x.shape[0]\nmaybe_install(self)\nreturn self.last(self.first(x))",
    what="layer.size = model.size; layer.register_forward_hook(lambda l, g, r: r * l.size)",
)
_o(
    "counts calls",
    "self.calls = getattr(self, 'calls', 0) + 1\nmaybe_install(self)\nreturn self.last(self.first(x)) * self.calls",
    what="layer.register_forward_hook(tell); model.calls = 10",
)
_o(
    "the attribute was read above",
    "y = x * self.factor\nmaybe_install(self)\nreturn self.last(self.first(y)) * self.factor",
    what="layer.register_forward_hook(tell); model.factor = 3.0",
    init=_INIT + "\nself.factor = 2.0",
)


# GM109
_KEPT = "kept = mask\nif positions[0] > 0 or (mask is not None and torch.all(mask == 1)):\n    kept = None\nreturn kept"
_PART = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 3)

    def forward(self, x, mask=None):
        x = self.proj(x)
        if mask is not None:
            x = {use}
        return {out}
"""
_M3 = "torch.ones(2, 3, 3)"
_MI = "torch.randn(2, 3, 3), torch.ones(2, 3, dtype=torch.long)"
_MZ = "torch.randn(2, 3, 3), torch.tensor([[0, 1, 1], [1, 1, 1]])"


def _m(
    name: str,
    use: str = "x * mask[:, :, None]",
    out: str = "torch.cumsum(x, dim=1)",
    kept: str = _KEPT,
    call: str = "self.part(x, kept)",
    **kw: Any,
) -> None:
    body = f"if positions is None:\n    positions = torch.arange(x.shape[1])\nkept = self._mask(mask, positions)\nreturn {call}"
    method = "def _mask(self, mask, positions):\n" + "\n".join("    " + line for line in kept.split("\n"))
    kw = {
        "init": "self.part = Part()",
        "methods": method,
        "args": "x: torch.Tensor, mask=None, positions=None",
        "inputs": (_MI, _MZ, f"{_MZ}, torch.arange(5, 8)", "torch.randn(2, 3, 3)"),
        "top": _PART.format(use=use, out=out),
        **kw,
    }
    masked.add(name, body, **kw)


_m("plain")
_m(
    "uint8 masks",
    inputs=(
        "torch.randn(2, 3, 3), torch.ones(2, 3).byte()",
        "torch.randn(2, 3, 3), torch.tensor([[0, 1, 1], [1, 1, 1]]).byte()",
    ),
)
_m(
    "masks that broadcast",
    inputs=(
        "torch.randn(2, 3, 3), torch.ones(1, 3)",
        "torch.randn(2, 3, 3), torch.ones(2, 1)",
        "torch.randn(1, 3, 3), torch.ones(2, 3)",
    ),
)
_m("the caller returns it", call="(self.part(x, kept), kept)")
_m(
    "a hook in the project",
    files={
        "other.py": "import model\n\n\ndef make():\n    made = model.Model()\n    made.part.register_forward_pre_hook(lambda l, given: (given[0] * (1 if given[1] is None else 3), given[1]))\n    return made\n"
    },
    make="other.make()",
)
_m(
    "the method is replaced",
    files={
        "other.py": "import model\n\n\nclass Other(model.Model):\n    def _mask(self, mask, positions):\n        return None\n"
    },
    make="other.Other()",
)


# GM404
def _t(name: str, body: str, **kw: Any) -> None:
    kw = {
        "args": "x: torch.Tensor, mask: torch.BoolTensor",
        "inputs": (
            "torch.ones(3, 2), torch.tensor([True, False, True])",
            "torch.ones(3, 2), torch.zeros(3) > 1",
            "torch.ones(4, 2), torch.tensor([True, False, True])",
        ),
        "varied": False,
        **kw,
    }
    tables.add(name, body, **kw)


_R = "places = torch.arange(start, start + len(x), device=x.device)\nreturn x * places[:, None]"
_t("range", f"start = mask.sum()\n{_R}")
_t(
    "range, start written below",
    "start = mask.sum()\nplaces = torch.arange(start, start + len(x), device=x.device)\nstart.add_(1)\nreturn x * places[:, None] + start",
)
_t(
    "range of uint8",
    "start = mask.sum().to(torch.uint8) + 250\nplaces = torch.arange(start, start + 10, device=x.device)\nreturn places + x.sum()",
)
_CACHE = "class Cache:\n    def __init__(self, length):\n        self.used = torch.zeros(length, dtype=torch.bool)\n\n    def get_seq_length(self) -> int:\n        return (self.used > 0).sum()\n"
_t(
    "range of a cache",
    "if cache is None:\n    cache = Cache(8)\nseen = cache.get_seq_length() if cache is not None else 0\nplaces = torch.arange(seen, seen + len(x), device=x.device)\nreturn x * places[:, None]",
    args="x: torch.Tensor, cache=None",
    top=_CACHE,
    inputs=("torch.ones(3, 2)", "torch.ones(3, 2), Cache(4)", "torch.ones(3, 2), Sub(4)"),
    files={
        "other.py": "import model\n\n\nclass Sub(model.Cache):\n    def get_seq_length(self):\n        return 3\n\n\nmodel.Sub = Sub\n"
    },
)


# Tables
_EXP = "count = positions.shape[0]\nparts = [weight.expand((count,) + (6, 4) + weight.shape[-1:]) for weight in self.weights]\n"
_CUT = "last = positions.max().item()\ncolumns = -(-(last + 1) // 4)\ntable = torch.cat([part[:, :columns] for part in parts], dim=-1)\ntable = torch.reshape(table, (count, -1, table.shape[-1]))\ntable = torch.cat([torch.index_select(table[i], 0, positions[i]).unsqueeze(0) for i in range(count)], dim=0)\n"


def _c(name: str, body: str = _EXP + _CUT + "return table", **kw: Any) -> None:
    kw = {
        "args": "positions: torch.Tensor",
        "init": "self.weights = nn.ParameterList([nn.Parameter(torch.randn(6, 1, 3)), nn.Parameter(torch.randn(1, 4, 2))])",
        "inputs": (
            "torch.tensor([[0, 1, 2], [5, 3, 9]])",
            "torch.tensor([[23, 0, 7]])",
            "torch.tensor([[24, 0, 7]])",
            "torch.tensor([[-1, 0, 7]])",
        ),
        "varied": False,
        **kw,
    }
    tables.add("cut: " + name, body, **kw)


_c("plain")
_c("positions written", _EXP + _CUT.replace("columns =", "positions.add_(1)\ncolumns =") + "return table")
_c("positions all negative", inputs=("torch.tensor([[-1, -2, -3]])",))
_c("weights written below", _EXP + _CUT + "with torch.no_grad():\n    self.weights[0].mul_(2.0)\nreturn table")


# GM502
_L = "weights, chosen = torch.topk(torch.softmax(self.gate(x), dim=-1), 2, dim=-1)\nresult = torch.zeros_like(x)\nfor i, expert in enumerate(self.experts):\n    row, slot = torch.where(chosen == i)\n    state = {state}\n    result[row] += state * weights[row, slot, None]\nreturn result"


def _e(name: str, state: str, method: str, **kw: Any) -> None:
    kw = {
        "init": "self.gate = nn.Linear(3, 4)\nself.experts = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])\nself.norm = nn.LayerNorm(3)\nself.factor = 2.0\nself.register_buffer('bias', torch.ones(3))\nself.table = [1, 2]",
        "methods": method,
        "inputs": ("torch.randn(5, 3)", "torch.randn(6, 3)", "torch.randn(1, 3)"),
        "varied": False,
        **kw,
    }
    experts.add(name, _L.format(state=state), **kw)


_e("reads a number", "self.act(expert(x[row]))", "def act(self, t):\n    return t * self.factor")
_e(
    "a number changed between",
    "self.act(expert(x[row]))",
    "def act(self, t):\n    return t * self.factor",
    inputs=("between((torch.ones(5, 3),))", "between((torch.ones(5, 3),))", "between((torch.ones(5, 3),))"),
    outside="import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    def between(given):\n        made.factor += 1.0\n        return given\n    model.between = between\n    return made\n",
)
_e(
    "a buffer replaced between",
    "self.act(expert(x[row]))",
    "def act(self, t):\n    return t + self.bias",
    inputs=("between((torch.ones(5, 3),))", "between((torch.ones(5, 3),))", "between((torch.ones(5, 3),))"),
    outside="import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    def between(given):\n        made.bias = made.bias + 1.0\n        return given\n    model.between = between\n    return made\n",
)
_e(
    "writes a buffer",
    "self.act(expert(x[row]))",
    "def act(self, t):\n    self.bias.add_(1.0)\n    return t + self.bias",
)
_e(
    "replaced on the instance",
    "self.act(expert(x[row]))",
    "def act(self, t):\n    return torch.relu(t)",
    outside="import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    made.act = lambda t: t * 5\n    return made\n",
)
_e(
    "replaced in a subclass",
    "self.act(expert(x[row]))",
    "def act(self, t):\n    return torch.relu(t)",
    files={"other.py": "import model\n\n\nclass Other(model.Model):\n    def act(self, t):\n        return t * 5\n"},
    make="other.Other()",
)
_e("under no_grad", "self.act(expert(x[row]))", "@torch.no_grad()\ndef act(self, t):\n    return t * 2")
_e(
    "hooked norm",
    "self.act(expert(x[row]))",
    "def act(self, t):\n    return self.norm(t)",
    outside="import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    made.norm.register_forward_hook(lambda l, g, r: r * 2)\n    return made\n",
)
