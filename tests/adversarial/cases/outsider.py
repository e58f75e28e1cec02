"""What an outside reader tried: who sees the object, its strides or its memory, and headers that can never be true."""

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_N = "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])"

seen = Group("who sees a selected tensor")
seen.add(
    "strides, in the function",
    """
    y = x.clone()
    z = torch.ones(3, 2).t()
    if x.sum() > 0:
        y = y * 2
    else:
        y = z * 3
    return y.view(-1) if y.is_contiguous() else y.t().reshape(-1) + 1
    """,
)
seen.add(
    "strides that a branch changes",
    """
    y = x.t()
    if y.sum() > 0:
        y = y.contiguous()
    return y.stride(0) * y, y.is_contiguous()
    """,
)
_PICK = """
def pick(self, v):
    if torch.isnan(v).any():
        return torch.nan_to_num(v)
    return v
"""
seen.add(
    "identity of a result, in the caller", "y = self.pick(x)\nif y is x:\n    return x + 100\nreturn y", methods=_PICK
)
seen.add(
    "memory of a result, in the caller", "y = self.pick(x)\nreturn y + (y.data_ptr() == x.data_ptr())", methods=_PICK
)
seen.add(
    "identity of a result in a tuple, in the caller",
    "y, n = self.pick(x)\nif y is x:\n    return x + n\nreturn y",
    methods="""
    def pick(self, v):
        if torch.isnan(v).any():
            v = torch.nan_to_num(v)
        return v, 3
    """,
)
_WRITES = "out = self.pick(x)\nout.add_(1)\nreturn out + self.base + x"
for _name, _kept in {"attribute": "self.base", "view of an attribute": "self.base[:]", "view": "v.view(2, 3)"}.items():
    seen.add(
        f"the caller writes into a returned {_name}",
        _WRITES,
        init="self.register_buffer('base', torch.zeros(2, 3))",
        methods=f"""
        def pick(self, v):
            if v.sum() > 0:
                return v * 2
            return {_kept}
        """,
    )
seen.add(
    "the caller writes into an element of a result",
    "y, n = self.pick(x)\ny.mul_(3)\nreturn y + x + n",
    methods="""
    def pick(self, v):
        if v.sum() > 0:
            v = v * 2
        return v, 3
    """,
)

skipped = Group("what eager mode skips raises for a dtype")
skipped.add(
    "nan_to_num of complex numbers, with gradients",
    """
    if torch.isinf(x).any():
        x = torch.nan_to_num(x)
    return x
    """,
    inputs=(_X, f"torch.complex({_X}, {_N})"),
)

never = Group("headers that are never true")
never.add("the flag of zeros", "t = torch.zeros(3)\nu = t.detach()\nu.requires_grad = True\nreturn x + u")
for _name, _made in {
    "detached": "d = x.detach()",
    "new": "d = torch.ones(2, 3)",
    "computed without gradients": "with torch.no_grad():\n    d = x * 2",
}.items():
    never.add(f"a leaf like a tensor that is {_name}", f"{_made}\nreturn x + torch.zeros_like(d).requires_grad_()")
never.add(
    "a leaf made without gradients", "with torch.no_grad():\n    z = torch.zeros_like(x).requires_grad_()\nreturn x + z"
)
never.add(
    "a detached input of a checkpoint",
    """
    h = x.detach().clone()
    if self.training:
        h.requires_grad = True
    return checkpoint(self.linear, h, use_reentrant=False)
    """,
    init="self.linear = nn.Linear(3, 3)",
    top="from torch.utils.checkpoint import checkpoint",
)
never.add("a mask of floats", "m = (x > -100).to(x.dtype)\nif not torch.all(m == 1):\n    x = x * m\nreturn x")
never.add("a product of integers", "y = x.long()\nm = y > -9\nif not torch.all(m == 1):\n    y = y * m\nreturn y")
never.add(
    "a number that both ways use",
    "s = self.k.item()\nif self.training:\n    x = x * s\nelse:\n    self.note = s\nreturn x",
    init="self.register_buffer('k', torch.tensor(3.0))",
)

effects = Group("what a header or a message would do")
effects.add(
    "a property asked once more",
    "s = self.k.item()\nif self.training:\n    x = x * s\nreturn x, self.n",
    init="self.n = 0",
    methods="""
    @property
    def k(self):
        self.n += 1
        return torch.tensor(3.0)
    """,
)
effects.add(
    "a method makes the message",
    "assert (x > -3).all(), self.tell()\nreturn x + self.n",
    init="self.n = 0",
    methods="""
    def tell(self):
        self.n += 1
        return "told"
    """,
)

loops = Group("fixes beside a break in a loop")
for _name, _first in {
    "a guard": "if torch.isnan(x).any():\n    raise ValueError('nan')",
    "a select": "if x.sum() > 0:\n    x = x * 2",
    "a message": "print('seen', x.mean())",
}.items():
    _loop = "for i in range(2):\n    if x.sum() > 100:\n        x = x.nonzero().float()\n    x = x + 1"
    loops.add(f"{_name} in front", f"{_first}\n{_loop}\nreturn x")
    loops.add(f"{_name} behind", f"{_loop}\n{_first}\nreturn x")
    loops.add(f"{_name} in it", f"{_loop.replace('x = x + 1', _first.replace(chr(10), chr(10) + '    '))}\nreturn x")
loops.add(
    "a select in the else of it",
    """
    for i in range(2):
        if x.sum() > 100:
            break
    else:
        if x.sum() > 0:
            x = x * 2
    return x
    """,
)
loops.add(
    "one that is mended, too",
    """
    if torch.isnan(x).any():
        raise ValueError("nan")
    for i in range(2):
        if x.sum() > 100:
            x = x / 2
        x = x + 1
    return x
    """,
)

saved = Group("a mask changes after it was used")
_MASK, _CHANGED = "m = x.detach() > 0\n", "m &= x.detach() < 3\n"
for _name, _body in {
    "a write": f"{_MASK}y = x * 1\ny[torch.where(m)] = 0.0\n{_CHANGED}return y.sum() + (x * m).sum()",
    "rows, in between": f"{_MASK}y = x * 1\nv = x[m] * 2\nm[0, 0] = False\nm[0, 1] = True\ny[m] = v\nreturn y",
    "an index": "i = x.detach().mean(0).argmax()\ny = x[:, i].exp()\ni.add_(1)\nreturn y * i",
    "a loop": """
    s = x.sum() * 0
    m = torch.ones_like(x, dtype=torch.bool)
    for t in (0.0, 1.0):
        m &= x.detach() > t
        s = s + x[m].sum()
    return s
    """,
    "a new tensor": f"{_MASK}y = x * 1\ny[torch.where(m)] = 0.0\nm = m & (y > 1)\nreturn y.sum() + (x * m).sum()",
}.items():
    saved.add(_name, _body, training=(True,), inputs=(_X, _N), varied=False)
