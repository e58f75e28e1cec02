"""What is computed while Dynamo traces, of what changes between calls: numbers, tables, functions, modes.

Two are different in compiled code: `a cached function of a global` and `a cached array that is written`, since Dynamo
looks through `functools.lru_cache` itself once nothing in the function breaks the graph.
"""

from typing import Any

from tests.adversarial.case import Group

_X = "torch.ones(2, 4)"
changing = Group("constants that change between calls")
_BETWEEN = (
    "import numpy as np\nimport torch\nfrom torch import nn\nimport model\n\n\n"
    "def make():\n    made = model.Model()\n    calls = []\n"
    "    def between(given):\n        calls.append(1)\n        if len(calls) == 2:\n            {}\n        return given\n"
    "    model.between = between\n    return made\n"
)


def _c(name: str, body: str, change: str, **kw: Any) -> None:
    kw = {"varied": False, "inputs": (f"between(({_X},))",) * 3, **kw}
    changing.add(name, body, outside=_BETWEEN.format(change), **kw)


_W = "window = torch.from_numpy(np.unwrap(np.linspace(0, {}, 4)))\nreturn x * window"
_c("an attribute", _W.format("self.n"), "made.n = 3", init="self.n = 9")
_c("an attribute becomes a fraction", _W.format("self.n"), "made.n = 3.5", init="self.n = 9")
_c("an attribute becomes a tensor", _W.format("self.n"), "made.n = torch.tensor(3.0)", init="self.n = 9")
_c("an attribute becomes a number of NumPy", _W.format("self.n"), "made.n = np.float64(3.5)", init="self.n = 9")
_c("a list", _W.format("self.n[0]"), "made.n[0] = 3", init="self.n = [9]")
_c("a tuple", _W.format("self.n[0]"), "made.n = (3,)", init="self.n = (9,)")
_c("an object", _W.format("self.c.n"), "made.c.n = 3", init="self.c = C()", top="class C:\n    n = 9")
_c("a global", _W.format("N"), "model.N = 3", top="N = 9")
_c(
    "a global that a function changes",
    _W.format("N"),
    "model.change()",
    top="N = 9\ndef change():\n    global N\n    N = 3",
)
_c("a global list", _W.format("N[0]"), "model.N[0] = 3", top="N = [9]")
_c(
    "a property",
    _W.format("self.n"),
    "made.m = 3",
    init="self.m = 9",
    methods="@property\ndef n(self):\n    return self.m",
)
_c("a class attribute", _W.format("self.n"), "model.Model.n = 3", methods="n = 9")
_F = "def table(n):\n    return np.unwrap(np.linspace(0, n * {}, 4))"
_U = "return x * torch.as_tensor(table(x.shape[1]))"
_c("a function of a global", _U, "model.N = 3", top="N = 9\n" + _F.format("N"))
_c(
    "a function of a changed global",
    _U,
    "model.change()",
    top="N = 9\ndef change():\n    global N\n    N = 3\n" + _F.format("N"),
)
_c("a function of a table", _U, "model.N['a'] = 3", top="N = {'a': 9}\n" + _F.format("N['a']"))
_c("a function of a class", _U, "model.C.n = 3", top="class C:\n    n = 9\n" + _F.format("C.n"))
_c(
    "a function of a default",
    _U,
    "model.table.__defaults__ = (3,)",
    top="def table(n, k=9):\n    return np.unwrap(np.linspace(0, n * k, 4))",
)
_c("a function that is replaced", _U, "model.table = lambda n: np.zeros(n)", top=_F.format("9"))
_c(
    "a method that is replaced",
    "return x * torch.as_tensor(self.table(x.shape[1]))",
    "made.table = lambda n: np.zeros(n)",
    methods="def table(self, n):\n    return np.unwrap(np.linspace(0, n, 4))",
)
_c(
    "a cached function of a global",
    _U,
    "model.N = 3",
    top="import functools\nN = 9\n@functools.lru_cache\n" + _F.format("N"),
)
_c(
    "a cached function that is cleared",
    _U,
    "model.N = 3; model.table.cache_clear()",
    top="import functools\nN = 9\n@functools.lru_cache\n" + _F.format("N"),
)
_c(
    "a cached function of another file",
    "return x * torch.as_tensor(other.table(x.shape[1]))",
    "import other; other.N = 3; other.table.cache_clear()",
    top="import other",
    files={
        "other.py": "import functools\nimport numpy as np\nN = 9\n@functools.lru_cache\ndef table(n):\n    return np.unwrap(np.linspace(0, n * N, 4))\n"
    },
)
_c(
    "a function of another file",
    "return x * torch.as_tensor(table(x.shape[1]))",
    "import other; other.N = 3",
    top="from other import table",
    files={"other.py": "import numpy as np\nN = 9\ndef table(n):\n    return np.unwrap(np.linspace(0, n * N, 4))\n"},
)
_c("random numbers", "return x * torch.as_tensor(np.unwrap(np.random.rand(4)))", "pass")
_c("a seed in a function", _U, "pass", top="def table(n):\n    return np.unwrap(np.random.RandomState(0).rand(4))")
_c(
    "what is written in place",
    "w = torch.from_numpy(np.unwrap(np.linspace(0, 9, 4)))\nw.mul_(x[0])\nself.last = w\nreturn x * w",
    "made.last.zero_()",
    init="self.last = None",
)
_c("an array that is written", "a = np.unwrap(np.linspace(0, 9, 4))\na[0] = 5\nreturn x * torch.as_tensor(a)", "pass")
_c(
    "an array that is kept",
    "self.a = np.unwrap(np.linspace(0, 9, 4))\nreturn x * torch.as_tensor(self.a)",
    "made.a[:] = 0",
    init="self.a = None",
)
_c(
    "a cached array that is written",
    "a = table(x.shape[1])\na[0] += 1\nreturn x * torch.as_tensor(a)",
    "pass",
    top="import functools\n@functools.lru_cache\n" + _F.format("9"),
)

_M = "n = x.shape[1]\nkept = torch.ones(n, n).triu({}).bool()\ny = x.t() @ x\nreturn y[kept].view(1, -1) * 1"
_c("counted by an attribute", _M.format("self.k"), "made.k = 0", init="self.k = 1")
_c("counted by a global", _M.format("K"), "model.K = 0", top="K = 1")
_c("counted by a changed global", _M.format("K"), "model.change()", top="K = 1\ndef change():\n    global K\n    K = 0")
_c("counted by a list", _M.format("self.k[0]"), "made.k[0] = 0", init="self.k = [1]")
_c("counted by a global list", _M.format("K[0]"), "model.K[0] = 0", top="K = [1]")
_c(
    "counted by a method",
    _M.format("self.diagonal()"),
    "made.k = 0",
    init="self.k = 1",
    methods="def diagonal(self):\n    return self.k",
)
_c("counted by a function", _M.format("diagonal()"), "model.K = 0", top="K = 1\ndef diagonal():\n    return K")
_c("counted by an object", _M.format("self.c.k"), "made.c.k = 0", init="self.c = C()", top="class C:\n    k = 1")
_c("counted by a fraction", _M.format("int(self.k)"), "made.k = 0.5", init="self.k = 1.5")
_c("counted by a negative number", _M.format("self.k"), "made.k = -1", init="self.k = 1")
_R = "counts = torch.tensor({})\nreturn torch.repeat_interleave(x, counts, dim=0) * 1"
_c("repeated by an attribute", _R.format("self.k"), "made.k = [2, 1]", init="self.k = [1, 3]")
_c("repeated by a list that changes", _R.format("self.k"), "made.k[0] = 4", init="self.k = [1, 3]")
_c("repeated by a global", _R.format("K"), "model.K = [2, 1]", top="K = [1, 3]")
_c("repeated by a global list", _R.format("K"), "model.K[0] = 4", top="K = [1, 3]")
_c("repeated by tensors", _R.format("self.k"), "made.k[0] = 4", init="self.k = [torch.tensor(1), 3]")
_c("repeated by negative counts", _R.format("self.k"), "made.k[0] = -4", init="self.k = [1, 3]")
_c("repeated by fractions", _R.format("self.k"), "made.k[0] = 2.5", init="self.k = [1, 3]")
_c("repeated by bools", _R.format("self.k"), "made.k = [True, False]", init="self.k = [1, 3]")
_c("repeated too often", _R.format("self.k"), "made.k = [1, 2, 3]", init="self.k = [1, 3]")
_c(
    "repeated, changed in between",
    "counts = torch.tensor(self.k)\nself.k[0] = 7\nreturn torch.repeat_interleave(x, counts, dim=0) * 1",
    "made.k = [2, 1]",
    init="self.k = [1, 3]",
)
_c(
    "repeated, the tensor changes",
    "counts = torch.tensor(self.k)\ncounts[0] = 7\nreturn torch.repeat_interleave(x, counts, dim=0) * 1",
    "made.k = [2, 1]",
    init="self.k = [1, 3]",
)
_c(
    "repeated by another name",
    "counts = torch.tensor(self.k)\nother = counts\nother += 1\nreturn torch.repeat_interleave(x, counts, dim=0) * 1",
    "made.k = [2, 1]",
    init="self.k = [1, 3]",
)
_c(
    "repeated by int32",
    "counts = torch.tensor(self.k, dtype=torch.int32)\nreturn torch.repeat_interleave(x, counts, dim=0) * 1",
    "made.k = [2, 1]",
    init="self.k = [1, 3]",
)
_c(
    "repeated by floats of a dtype",
    "counts = torch.tensor(self.k, dtype=torch.float32)\nreturn torch.repeat_interleave(x, counts.long(), dim=0) * 1",
    "made.k = [2, 1]",
    init="self.k = [1, 3]",
)
_P = "shape = np.array(x.shape[1:])\nn = int(np.prod({}))\nreturn x.reshape(-1)[:n].sum() * n"
_c("sizes of a list", _P.format("self.k"), "made.k[0] = 4", init="self.k = [1, 3]")
_c("sizes of an array", _P.format("self.k"), "made.k = np.array([2, 2])", init="self.k = [1, 3]")
_c("sizes of fractions", _P.format("self.k"), "made.k = [0.5, 4]", init="self.k = [1, 3]")
_c("sizes that overflow", _P.format("self.k"), "made.k = [2**40, 2**40]", init="self.k = [1, 3]")
_c("no sizes", _P.format("self.k"), "made.k = []", init="self.k = [1, 3]")
_c("sizes of bools", _P.format("self.k"), "made.k = [True, 3]", init="self.k = [1, 3]")
_S = "maybe(self)\nreturn x * self.scale"
_c(
    "a flag that is reset",
    _S,
    "made.done = False; made.scale = 5.0",
    init="self.done = False\nself.scale = 1.0",
    top="import threading\n_lock = threading.Lock()\ndef maybe(m):\n    if m.done:\n        return\n    with _lock:\n        if m.done:\n            return\n        m.scale = m.scale + 1\n        m.done = True",
)
