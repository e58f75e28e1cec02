"""Masks of sizes alone, products of sizes, and flags of cuDNN: what is no longer so where the compile path reads it."""

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0], [0.5, 2.0, -7.0]])"
_V = "torch.tensor([1.0, -2.0, 3.0])"
_I = "torch.tensor([[1, -2, 3], [4, 0, -1]])"

masks = Group("masks of sizes")
_TRIANGLE = "m = torch.ones(3, 3).triu(self.k).bool()\n{}\nreturn x[m] * 2"
for _name, _between in {
    "by a method": "self.advance()",
    "by a statement": "self.k += 1",
    "by setattr": "setattr(self, 'k', self.k + 1)",
    "by its dictionary": "self.__dict__['k'] = 2",
    "by a hook of a layer": "x = self.lin(x)",
    "by nothing": "y = torch.relu(x)",
}.items():
    masks.add(
        f"an attribute changed {_name}",
        _TRIANGLE.format(_between),
        init="self.k = 0\nself.lin = nn.Linear(3, 3)\nself.lin.register_forward_hook(lambda *a: setattr(self, 'k', 1))",
        methods="def advance(self):\n    self.k += 1",
        inputs=(_X, _X),
        varied=False,
    )
_SHADOWED = "n = x.shape[0]\nm = torch.ones(n, n).triu(n - 2).bool()\n"
for _name, _body in {
    "written by each round of a loop": "m = torch.zeros(3, 3, dtype=torch.bool)\nfound = []\nfor step in range(3):\n"
    "    m[step] = True\n    found.append(x[m])\nreturn torch.cat(found)",
    "of no dimensions": "m = torch.ones((), dtype=torch.bool)\nreturn x[m] * 2, m.nonzero(), torch.where(m)",
    "of no elements": "n = x.shape[1] - 3\nm = torch.ones(n, n).triu().bool()\nreturn x[:0, :0][m], m.nonzero()",
    "made by a function imported in forward": "from torch import eye\nm = eye(3).bool()\nm[0, 1] = True\nreturn x[m]",
    "made by a module imported in forward": "import torch as th\nm = th.ones(3, 3).bool()\nm[0, 1] = False\nreturn x[m]",
    "written by a function called where": "m = torch.eye(3, dtype=torch.bool)\nwhere(m)\nreturn x[m] * 2",
    "written by a method called argwhere": "m = torch.eye(3, dtype=torch.bool)\nself.argwhere(m)\nreturn x[m] * 2",
    "kept by a method called where": "m = torch.ones(3, 3).triu().bool()\nself.where(m)\nself.held[2, 0] = True\n"
    "return x[m] * 2",
    "whose size a comprehension names": _SHADOWED + "ys = [x[m] for n in (1, 2)]\nreturn ys[0] + ys[1]",
    "whose size a walrus binds": _SHADOWED + "return (n := 1) + x[m]",
    "whose tensor a walrus binds": _SHADOWED + "return (x := x * 2)[m] + x[m]",
    "written through an expanded one": "m = torch.zeros(1, 3, dtype=torch.bool)\nk = m.expand(3, 3)\nm[0, 1] = True\n"
    "return x[k] * 2",
}.items():
    masks.add(
        _name,
        _body,
        top="def where(m):\n    m[0, 1] = True",
        methods="def argwhere(self, m):\n    m[0, 1] = True\n\ndef where(self, m):\n    self.held = m",
        inputs=(_X, _X),
        varied=False,
    )
for _name in ("len", "range", "int", "isinstance"):
    masks.add(
        f"beside another {_name}",
        "m = torch.ones(n, n).triu().bool()\nreturn x[m] * 2",
        args=f"x, n=3, {_name}=None",
        inputs=(_X, _X),
        varied=False,
    )
for _name, _counts in {"a bool": "[True]", "a negative number": "[-1]", "too many": "[2, 1]", "none": "[]"}.items():
    masks.add(
        f"repeated by {_name}",
        "return x.repeat_interleave(torch.tensor(self.k), 0) * 2",
        init=f"self.k = {_counts}",
        inputs=(_X, _X),
        varied=False,
    )

products = Group("products of sizes")
for _name, _body in {
    "as a fill": "n = np.prod(x.shape[1:])\nreturn torch.full((2,), n) + x.sum()",
    "of all sizes, as a fill": "return torch.full((2,), np.prod(x.sum().shape)) + x.sum()",
    "as a view": "n = np.prod(x.shape[1:])\nreturn x.reshape(-1, n)",
    "asked for its class": "n = np.prod(x.shape[1:])\nreturn x * (1 if isinstance(n, int) else 2)",
    "cast": "n = np.prod(x.shape[1:]).astype(np.float32)\nreturn x * n",
    "cast later": "n = np.prod(x.shape[1:])\nm = n.astype(int)\nreturn x * m",
    "of a property": "n = np.prod(self.levels)\nreturn x * n, self.count",
    "of nothing": "n = np.prod(self.none)\nreturn torch.full((2,), n) + x.sum()",
}.items():
    products.add(
        _name,
        _body,
        init="self.count = 0\nself.none = []",
        methods="@property\ndef levels(self):\n    self.count += 1\n    return [self.count, 2]",
        inputs=(_X, _V, _I, "torch.tensor([1, 2])"),
        varied=False,
    )

flags = Group("flags of cuDNN")
for _name, _body in {
    "read inside": "with torch.backends.cudnn.flags(enabled=False):\n"
    "    y = x * (1 if torch.backends.cudnn.enabled else 2)\nreturn y",
    "read by a function": "with torch.backends.cudnn.flags(deterministic=True):\n    y = asked(x)\nreturn y",
    "unknown": "with torch.backends.cudnn.flags(foo=1):\n    y = x * 2\nreturn y",
    "entered by hand": "c = torch.backends.cudnn.flags(enabled=False)\nc.__enter__()\ny = x * 2\n"
    "c.__exit__(None, None, None)\nreturn y",
}.items():
    flags.add(
        _name,
        _body,
        top="def asked(x):\n    return x * (1 if torch.backends.cudnn.deterministic else 2)",
        inputs=(_X, _X),
        varied=False,
    )
