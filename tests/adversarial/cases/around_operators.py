"""Operators in company: state that changes above them in the same trace, strides, second gradients (with `--opaque`)."""

from typing import Any

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_N = "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])"
_T = "torch.arange(9.0).reshape(3, 3) - 4"

late = Group("state that changes above an operator")
_SORT = """
def kept(x, {args}):
    k = x > 0
    q = torch.zeros_like(x)
    q[k] = x[k].sort().values
    return q * {value}
"""
_METHOD = """
def kept(self, x):
    k = x > 0
    q = torch.zeros_like(x)
    q[k] = x[k].sort().values
    return q * {value}
"""


def _l(name: str, body: str, value: str, args: str = "scale=1", top: str = "", method: bool = True, **kw: Any) -> None:
    text = (_METHOD if method else _SORT).format(value=value, args=args)
    extra = {"methods": text} if method else {"top": f"{top}\n{text}"}
    if method and top:
        extra["top"] = top
    late.add(name, body, inputs=(_X, _N, _T, _X), varied=False, **{**extra, **kw})


_l("a number", "self.k = self.k + 1\nreturn self.kept(x)", "self.k", init="self.k = 1")
_l("a number in a branch", "if self.training:\n    self.k = 3\nreturn self.kept(x)", "self.k", init="self.k = 1")
_l("a fraction", "self.k = x.shape[0] / 4\nreturn self.kept(x)", "self.k", init="self.k = 1.0")
_l("a flag", "self.on = not self.on\nreturn self.kept(x)", "(2 if self.on else 1)", init="self.on = True")
_l("a tensor", "self.w = x.mean()\nreturn self.kept(x)", "self.w", init="self.w = torch.tensor(1.0)")
_l(
    "a tensor in place",
    "self.w.add_(1)\nreturn self.kept(x)",
    "self.w",
    init="self.register_buffer('w', torch.tensor(1.0))",
)
_l("a list", "self.k[0] = self.k[0] + 1\nreturn self.kept(x)", "self.k[0]", init="self.k = [1]")
_l("a list that grows", "self.k.append(2)\nreturn self.kept(x)", "len(self.k)", init="self.k = [1]")
_l("a dictionary", "self.k['a'] = self.k['a'] + 1\nreturn self.kept(x)", "self.k['a']", init="self.k = {'a': 1}")
_l("an object", "self.c.k += 1\nreturn self.kept(x)", "self.c.k", init="self.c = C()", top="class C:\n    k = 1")
_l("a part", "self.part.k = 5\nreturn self.kept(x)", "self.part.k", init="self.part = nn.Identity()\nself.part.k = 1")
_l(
    "a layer's weight",
    "self.lin.weight.data.mul_(2)\nreturn self.kept(x)",
    "self.lin.weight.sum()",
    init="self.lin = nn.Linear(3, 3)",
)
_l(
    "a new layer",
    "self.lin = self.other\nreturn self.kept(x)",
    "self.lin.weight.sum()",
    init="self.lin = nn.Linear(3, 3)\nself.other = nn.Linear(3, 3)",
)
_l("a class attribute", "type(self).k = 7\nreturn self.kept(x)", "self.k", init="pass", base="nn.Module")
_l("a global", "global K\nK = K + 1\nreturn kept(x)", "K", top="K = 1", method=False)
_l("a global list", "K[0] += 1\nreturn kept(x)", "K[0]", top="K = [1]", method=False)
_l("a global dictionary", "K['a'] = 4\nreturn kept(x)", "K['a']", top="K = {'a': 1}", method=False)
_l("a global object", "C.k += 1\nreturn kept(x)", "C.k", top="class C:\n    k = 1", method=False)
_l("a global tensor", "K.add_(1)\nreturn kept(x)", "K", top="K = torch.tensor(1.0)", method=False)
_l("a default that changes", "return kept(x)", "scale[0]", args="scale=[1]", method=False, top="")
_l("a function's attribute", "kept.k = kept.k + 1\nreturn kept(x)", "kept.k", method=False)
_l(
    "an argument's attribute",
    "c = C()\nc.k = 3\nreturn kept(x, c)",
    "c.k",
    args="c",
    top="class C:\n    k = 1",
    method=False,
)
_l("a list that is given", "c = [1]\nc[0] = 3\nreturn kept(x, c)", "c[0]", args="c", method=False)
_l("a number that is given", "self.k += 1\nreturn kept(x, self.k)", "c", args="c", method=False, init="self.k = 0")
_l(
    "a buffer by the caller",
    "self.w.mul_(2)\ny = self.kept(x)\nself.w.zero_()\nreturn y",
    "self.w",
    init="self.register_buffer('w', torch.tensor(1.0))",
)
_l("another instance", "self.o[0].k = 5\nreturn self.kept(x)", "self.o[0].k", init="self.k = 1\nself.o = [self]")
_l("setattr", "setattr(self, 'k', 5)\nreturn self.kept(x)", "self.k", init="self.k = 1")
_l("vars", "self.__dict__['k'] = 5\nreturn self.kept(x)", "self.k", init="self.k = 1")
_l(
    "a method above",
    "self.change()\nreturn self.kept(x)",
    "self.k",
    init="self.k = 1",
    methods="def change(self):\n    self.k += 1\n" + _METHOD.format(value="self.k"),
)
_l(
    "a layer above",
    "x = self.part(x)\nreturn self.kept(x)",
    "self.part.n",
    init="self.part = Part()",
    top="class Part(nn.Module):\n    n = 0\n    def forward(self, x):\n        self.n = self.n + 1\n        return x + 1",
)

strides = Group("strides of what an operator gives")
_LINES = "k = x > 0\nq = torch.zeros_like(x)\nq[k] = x[k].sort().values\ny = (q * 2).t()\n"
for _name, _rest in {
    "is_contiguous": "return y * 2 if y.is_contiguous() else y",
    "stride": "return y * y.stride(0)",
    "view": "return y.view(-1)",
    "reshape that is written": "z = y.reshape(-1)\nz.add_(1)\nreturn y, z",
    "flatten that is written": "z = y.flatten()\nz.add_(1)\nreturn y, z",
    "contiguous that is written": "z = y.contiguous()\nz.add_(1)\nreturn y, z",
    "identity of contiguous": "return y.contiguous() is y, y",
    "as_strided": "return y.as_strided((3,), (1,))",
    "ravel": "z = y.ravel()\nz.mul_(2)\nreturn y",
    "numpy": "return torch.as_tensor(y.detach().numpy().strides)",
    "clone keeps": "return y.clone().stride(0) + y",
    "empty_like": "return torch.zeros_like(y).stride(0) + y",
    "memory_format": "return y + y.is_contiguous(memory_format=torch.contiguous_format)",
}.items():
    strides.add(
        _name,
        f"y = self.kept(x)\n{_rest}",
        methods="def kept(self, x):\n    " + _LINES.strip().replace("\n", "\n    ") + "\n    return y",
        inputs=(_X, _N, _T),
        varied=False,
    )
    strides.add(f"{_name}, in one function", f"{_LINES}{_rest}", inputs=(_X, _N, _T), varied=False)


_l("a global tensor that stays", "return kept(x)", "K", top="K = torch.tensor(2.0)", method=False)
_l("a global tensor of sizes", "return kept(x)", "K.shape[0]", top="K = torch.ones(2)", method=False)
_l("a global parameter", "return kept(x)", "K", top="K = nn.Parameter(torch.tensor(2.0))", method=False)
_l("a global layer", "return kept(x)", "K(x)", top="K = nn.Linear(3, 3)", method=False)
_l("a global array", "return kept(x)", "float(K[0])", top="K = np.ones(2)", method=False)
_l("a list of tensors", "return kept(x)", "K[0]", top="K = [torch.tensor(2.0)]", method=False)
_l("a constant list", "return kept(x)", "K[0]", top="K = [2]", method=False)
_l("a tensor of a class", "return kept(x)", "C.k", top="class C:\n    k = torch.tensor(2.0)", method=False)
_l("a tensor of a default", "return kept(x)", "scale", args="scale=torch.tensor(2.0)", method=False)
_l(
    "a list that a function grows",
    "grow()\nreturn kept(x)",
    "len(K)",
    top="K = [2]\ndef grow():\n    K.append(1)",
    method=False,
)
_l(
    "a dictionary of another file",
    "K['a'] += 1\nreturn kept(x)",
    "K['a']",
    top="from other import K",
    method=False,
    files={"other.py": "K = {'a': 1}\n"},
)
_l(
    "a number of another file",
    "other.K += 1\nreturn kept(x)",
    "other.K",
    top="import other",
    method=False,
    files={"other.py": "K = 1\n"},
)
_l(
    "a function of another file that changes",
    "other.change()\nreturn kept(x)",
    "other.K",
    top="import other",
    method=False,
    files={"other.py": "K = 1\ndef change():\n    global K\n    K += 1\n"},
)
