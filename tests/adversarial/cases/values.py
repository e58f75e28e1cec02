"""Values that are not what they look like: dtypes, numpy, constants that overflow, gradient mode."""

from tests.adversarial.case import Group

bytes_ = Group("uint8 and other dtypes")
for name, test in {
    "any": "m.any()",
    "not any": "not m.any()",
    "all": "m.all()",
    "not all": "not m.all()",
    "torch.any": "torch.any(m)",
    "any over a dim, one row": "m[:1, :1].any(1)",
    "or": "m.any() or m.all()",
    "and not": "m.any() and not m.all()",
    "comparison of any": "m.any() == 1",
    "any of sums": "m.sum(0).any()",
    "element": "m[0, 0]",
    "not element": "not m[0, 0]",
    "max": "m.max()",
    "invert": "(~m).any()",
    "invert of any": "~m.any()",
    "invert of all": "~m.all()",
    "sum": "m.sum()",
}.items():
    form = f"""
        m = (x.abs() * 2).nan_to_num(0.0, 0.0, 0.0).to(torch.uint8)
        h = x * 1.0
        if {test}:
            h = h + 1.0
        else:
            h = h - 1.0
        return h
        """
    bytes_.add(f"uint8 {name}, select", form, varied=False)
    bytes_.add(
        f"uint8 {name}, guard",
        f"""
        m = (x.abs() * 2).nan_to_num(0.0, 0.0, 0.0).to(torch.uint8)
        if {test}:
            raise ValueError("mask")
        return x + 1.0
        """,
        varied=False,
    )
bytes_.add(
    "uint8 masked write",
    """
    m = (x.abs() * 2).nan_to_num(0.0, 0.0, 0.0).to(torch.uint8)
    h = x * 1.0
    if m.any():
        h[m.bool()] = 0.0
    return h
    """,
    varied=False,
)
bytes_.add(
    "uint8 mask given",
    """
    if mask.any():
        x = x.masked_fill(mask.bool(), 0.0)
    if not mask.all():
        x = x * mask
    return x
    """,
    args="x, mask: torch.BoolTensor",
    inputs=[
        "(torch.ones(2, 3), torch.tensor([[2, 0, 4], [0, 0, 0]], dtype=torch.uint8))",
        "(torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.uint8))",
        "(torch.ones(2, 3), torch.tensor([[3, 5, 4], [1, 2, 254]], dtype=torch.uint8))",
        "(torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool))",
    ],
    varied=False,
)
bytes_.add(
    "assert of a uint8 all",
    """
    m = (x.abs() * 2).nan_to_num(0.0, 0.0, 0.0).to(torch.uint8)
    assert m.all(), f"not all of {x.shape}"
    return x
    """,
    varied=False,
)
bytes_.add(
    "assert not any of uint8",
    """
    m = (x.abs() * 2).nan_to_num(0.0, 0.0, 0.0).to(torch.uint8)
    assert not m.any(), f"any of {x.shape}"
    return x
    """,
    varied=False,
)
bytes_.add(
    "mask times uint8",
    """
    m = (x > 0).to(torch.uint8)
    if not m.all():
        x = x * m
    return x
    """,
)
bytes_.add(
    "masked sum of uint8 index",
    """
    m = (x > 0).to(torch.uint8)
    return x[m.bool()].sum() + m.sum()
    """,
)
bytes_.add(
    "integer input, division in one arm",
    """
    if x.sum() > 0:
        x = x / 2
    return x + 1
    """,
    inputs=["torch.tensor([[1, 2, 3]])", "torch.tensor([[-1, -2, -3]])", "torch.tensor([[1.0, 2.0, 3.0]])"],
)
bytes_.add(
    "integer input, float constant",
    """
    if x.sum() > 0:
        y = x * 0.5
    else:
        y = x
    return y
    """,
    inputs=["torch.tensor([[1, 2, 3]])", "torch.tensor([[-1, -2, -3]])", "torch.tensor([[1.0, 2.0, 3.0]])"],
)
bytes_.add(
    "bool input, arithmetic in one arm",
    """
    if x.any():
        y = x + x
    else:
        y = x
    return y
    """,
    inputs=["torch.tensor([[True, False]])", "torch.tensor([[False, False]])"],
)
bytes_.add(
    "complex input, abs in one arm",
    """
    y = x * 1.0
    if y.abs().sum() > 4:
        y = y.abs()
    return y
    """,
    inputs=["torch.tensor([1 + 2j, 3 - 4j])", "torch.tensor([0.1 + 0j, 0j])", "torch.ones(3)"],
)
bytes_.add(
    "complex input, real part of a square",
    """
    y = x.conj()
    if y.abs().sum() > 4:
        y = y * 2.0
    return y, torch.view_as_real(y.resolve_conj())
    """,
    inputs=["torch.tensor([1 + 2j, 3 - 4j])", "torch.tensor([0.1 + 0j, 0j])"],
    varied=False,
)
bytes_.add(
    "sparse input",
    """
    if torch.sparse.sum(x) > 0 if x.is_sparse else x.sum() > 0:
        x = x * 2.0
    return x.to_dense()
    """,
    inputs=["torch.eye(3).to_sparse()", "(-torch.eye(3)).to_sparse()"],
    varied=False,
)
bytes_.add(
    "sparse input, plain sum",
    """
    if x.sum() > 0:
        x = x * 2.0
    return x
    """,
    inputs=["torch.eye(3)", "-torch.eye(3)", "torch.eye(3).to_sparse()", "(-torch.eye(3)).to_sparse()"],
    varied=False,
    training=(False,),
)
bytes_.add(
    "float8 input",
    """
    y = x.to(torch.float8_e4m3fn)
    if x.sum() > 0:
        y = y.clone()
    return y.float()
    """,
)
bytes_.add(
    "float8 select",
    """
    y = x.to(torch.float8_e4m3fn)
    z = (-x).to(torch.float8_e4m3fn)
    if x.sum() > 0:
        y = z
    return y.float()
    """,
)
bytes_.add(
    "float8 overflow guard",
    """
    y = x.to(torch.float8_e5m2)
    if torch.isinf(y.float()).any():
        y = torch.zeros_like(y)
    return y.float()
    """,
)
bytes_.add(
    "half on a number of double",
    """
    y = x.half()
    if y.sum() > 0:
        y = y * torch.tensor(2.0, dtype=torch.float64)
    return y
    """,
)
bytes_.add(
    "zero-dim double against float",
    """
    z = torch.tensor(3.0, dtype=torch.float64)
    if x.sum() > 0:
        z = x.mean()
    return z
    """,
)
bytes_.add(
    "broadcast in one arm",
    """
    y = x
    if x.sum() > 0:
        y = x + self.column
    return y
    """,
    init="self.column = nn.Parameter(torch.ones(2, 3))",
    inputs=["torch.ones(2, 3)", "torch.ones(1, 3)", "-torch.ones(1, 3)", "torch.ones(4, 2, 3)"],
    varied=False,
)
bytes_.add(
    "scalar in one arm",
    """
    y = x
    if x.sum() > 0:
        y = 1.0
    return y
    """,
)
bytes_.add(
    "Python bool in one arm",
    """
    done = False
    if x.sum() > 0:
        done = True
    return x if done else x * 2
    """,
)

numpy = Group("numpy and other given things")
for name, body in {
    "select": "if x.sum() > 0:\n    x = x * 2.0\nreturn x",
    "return": "if x.sum() > 0:\n    return x * 2.0\nreturn x - 1.0",
    "guard": 'if (x < 0).any():\n    raise ValueError("negative")\nreturn x * 2.0',
    "masked write": "if (x > 0).any():\n    x[x > 0] = 0.0\nreturn x",
    "masked sum": "m = x > 0\nreturn x[m].sum()",
    "item": "return x * x.max().item()",
    "while": "while x.sum() > 1:\n    x = x / 2\nreturn x",
    "overflow": "if np.isinf(x).any() if isinstance(x, np.ndarray) else torch.isinf(x).any():\n    x = x * 0\nreturn x",
    "mask product": "m = x > 0\nif not m.all():\n    x = x * m\nreturn x",
    "tolist": "return [n + 1 for n in x.tolist()]",
    "copy": "y = x.copy() if isinstance(x, np.ndarray) else x.clone()\nif y.max() > 0:\n    y = y - 1\nreturn y",
}.items():
    numpy.add(
        f"numpy for an annotated tensor, {name}",
        body,
        args="x: torch.Tensor",
        inputs=["np.array([[1.0, 2.0]])", "np.array([[-1.0, -2.0]])", "torch.ones(1, 2)", "np.array([[1, 2]])"],
        varied=False,
    )
numpy.add(
    "a Size for an annotated tensor",
    """
    if (shape[0] < 0) | (shape[-1] > 5):
        raise ValueError("shape")
    if not (shape[0] == 2):
        raise ValueError("rows")
    return x * 2.0
    """,
    args="x, shape: torch.Tensor",
    inputs=["(torch.ones(2, 3), torch.Size([2, 3]))", "(torch.ones(2, 3), torch.tensor([2, 3]))"],
    varied=False,
)
numpy.add(
    "a float for an annotated tensor",
    """
    if scale > 1:
        x = x * scale
    if scale < 0:
        raise ValueError("scale")
    return x
    """,
    args="x: torch.Tensor, scale: torch.Tensor",
    inputs=[
        "(torch.ones(2, 3), 2.0)",
        "(torch.ones(2, 3), torch.tensor(2.0))",
        "(torch.ones(2, 3), torch.tensor([2.0]))",
        "(torch.ones(2, 3), -1)",
    ],
    varied=False,
)
numpy.add(
    "None for an annotated tensor",
    """
    if mask is not None and not mask.all():
        x = x * mask
    if mask is None or mask.any():
        x = x + 1
    return x
    """,
    args="x: torch.Tensor, mask: torch.Tensor = None",
    inputs=["(torch.ones(2, 3),)", "(torch.ones(2, 3), torch.zeros(2, 3))", "(torch.ones(2, 3), np.ones((2, 3)))"],
    varied=False,
)
numpy.add(
    "a list for an annotated tensor",
    """
    total = 0
    for n in lengths:
        total = total + int(n)
    if lengths[0] > 1:
        x = x * 2
    return x * total
    """,
    args="x, lengths: torch.LongTensor",
    inputs=["(torch.ones(2, 3), [2, 3])", "(torch.ones(2, 3), torch.tensor([1, 3]))"],
    varied=False,
)
numpy.add(
    "a tensor for an annotated int",
    """
    if n > 1:
        x = x * 2
    return x[:n]
    """,
    args="x, n: int",
    inputs=["(torch.ones(2, 3), 1)", "(torch.ones(2, 3), torch.tensor(2))"],
    varied=False,
)
numpy.add(
    "a subclass of Tensor",
    """
    if x.sum() > 0:
        x = x * 2.0
    return x
    """,
    top="""
    class Own(torch.Tensor):
        pass
    """,
    inputs=["torch.ones(2, 3).as_subclass(Own)", "-torch.ones(2, 3)"],
    varied=False,
)
numpy.add(
    "a Parameter",
    """
    y = self.weight
    if x.sum() > 0:
        y = y * 2.0
    return y
    """,
    init="self.weight = nn.Parameter(torch.ones(3))",
)

constants = Group("constants that overflow")
for name, value in {
    "times 1e999": "x * 1e999",
    "times -1e400": "x * -1e400",
    "over a denormal": "x / 1e-50",
    "over a small number of halves": "x.half() / 1e-8",
    "times a name of inf": "x * BIG",
    "over zero": "x / 0.0",
    "over zero as a name": "x / ZERO",
    "plus inf": "x + float('inf')",
    "minus inf": "x - math.inf",
    "clamp to inf": "x.clamp(max=1e999)",
    "large power": "x ** 1e4",
    "negative power": "x ** -2",
    "half power": "x ** 0.5",
    "power zero of zero": "x ** 0",
    "exp of large": "torch.exp(x * 1e30)",
    "sqrt": "x.sqrt()",
    "rsqrt": "torch.rsqrt(x)",
    "log": "x.log()",
    "log1p": "torch.log1p(x)",
    "x over x": "x / x",
    "acos": "torch.acos(x)",
    "asin twice": "torch.asin(torch.clamp(x, -1, 1))",
    "atan2": "torch.atan2(x, x)",
    "norm": "x / x.norm()",
    "normalize": "F.normalize(x)",
    "std": "x / x.std()",
    "softmax of masked": "torch.softmax(x.masked_fill(x < 1, float('-inf')), -1)",
    "log_softmax": "torch.log_softmax(x.masked_fill(x < 10, float('-inf')), -1)",
    "reciprocal": "torch.reciprocal(x)",
    "inf times zero": "x * 0 * BIG",
    "lerp": "torch.lerp(x, x * BIG, 0.5)",
    "addcdiv": "torch.addcdiv(x, x, x)",
    "hypot": "torch.hypot(x, x)",
    "cumprod": "x.cumprod(0)",
    "prod": "x * x.prod()",
    "logsumexp": "x - torch.logsumexp(x.masked_fill(x < 10, float('-inf')), -1, True)",
    "tan": "torch.tan(x)",
    "erfinv": "torch.erfinv(x)",
    "logit": "torch.logit(x)",
    "xlogy": "torch.xlogy(x, x)",
    "fmod": "torch.fmod(x, x)",
    "cdist": "torch.cdist(x, x) @ x",
    "pow of tensors": "torch.pow(x.abs(), x)",
    "float of a square root": "x * math.sqrt(2.0)",
}.items():
    constants.add(
        f"{name}, assignment",
        f"""
        y = x
        if (x > 0).all():
            y = {value}
        return y
        """,
        top="BIG = float('inf')\nZERO = 0.0",
    )
    constants.add(
        f"{name}, return",
        f"""
        if (x > 0).all():
            return {value}
        return x + 1.0
        """,
        top="BIG = float('inf')\nZERO = 0.0",
        training=(True,),
        varied=False,
    )

modes = Group("gradient mode")
modes.add(
    "set by a statement before",
    """
    torch.set_grad_enabled(False)
    y = x * 2.0
    if y.sum() > 0:
        y = y.sqrt()
    torch.set_grad_enabled(True)
    return y * x
    """,
)
modes.add(
    "set by a statement in one arm",
    """
    y = x * 2.0
    if y.sum() > 0:
        torch.set_grad_enabled(False)
        y = y + 1.0
        torch.set_grad_enabled(True)
    else:
        y = y - 1.0
    return y * x
    """,
)
modes.add(
    "entered by hand",
    """
    ctx = torch.no_grad()
    ctx.__enter__()
    y = x * 2.0
    if y.sum() > 0:
        y = y / x
    ctx.__exit__(None, None, None)
    return y * x
    """,
)
modes.add(
    "enable_grad in a no_grad call",
    """
    with torch.enable_grad():
        y = x * 2.0
        if y.sum() > 0:
            y = y.sqrt()
    return y
    """,
)
modes.add(
    "no_grad block with a select",
    """
    with torch.no_grad():
        if x.sum() > 0:
            y = x.sqrt()
        else:
            y = x
    return y * x
    """,
)
modes.add(
    "decorated",
    """
    if x.sum() > 0:
        return x.sqrt()
    return x
    """,
    decorator="@torch.no_grad()",
)
modes.add(
    "inference mode",
    """
    if x.sum() > 0:
        return x.sqrt()
    return x
    """,
    decorator="@torch.inference_mode()",
)
modes.add(
    "detach in one arm",
    """
    y = x * 2.0
    if y.sum() > 0:
        y = y.detach()
    return y
    """,
)
modes.add(
    "requires_grad_ in one arm",
    """
    y = x.detach() * 2.0
    if y.sum() > 0:
        y = y.requires_grad_()
    return y, y.requires_grad
    """,
)
modes.add(
    "result without gradient asked for it",
    """
    y = torch.zeros_like(x)
    if x.sum() > 0:
        y = x * 2.0
    return y, y.requires_grad
    """,
)
modes.add(
    "is_leaf and grad_fn",
    """
    y = x
    if x.sum() > 0:
        y = x * 2.0
    return y, y.grad_fn is None, y.is_leaf
    """,
)
modes.add(
    "hook on the value",
    """
    y = x * 2.0
    if y.requires_grad:
        y.register_hook(lambda g: g * 3.0)
    if x.sum() > 0:
        y = y + 1.0
    return y
    """,
)
modes.add(
    "retain_grad of the value",
    """
    y = x * 2.0
    if y.requires_grad:
        y.retain_grad()
    z = y
    if x.sum() > 0:
        z = y * 2.0
    return z
    """,
)
modes.add(
    "checkpoint",
    """
    def part(t):
        if t.sum() > 0:
            return t.sqrt()
        return t
    return torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False)
    """,
    top="import torch.utils.checkpoint",
)
modes.add(
    "custom autograd function",
    """
    y = Twice.apply(x)
    if y.sum() > 0:
        y = Twice.apply(y)
    return y
    """,
    top="""
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3
    """,
)
modes.add(
    "autograd.grad inside",
    """
    if not x.requires_grad:
        return x
    y = (x * x).sum()
    g, = torch.autograd.grad(y, x, create_graph=True)
    if g.sum() > 0:
        g = g.sqrt()
    return g
    """,
)
modes.add(
    "autocast block",
    """
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = self.linear(x)
        if h.sum() > 0:
            h = h * 2.0
        else:
            h = h + x
    return h
    """,
    init="self.linear = nn.Linear(3, 3)",
    varied=False,
)
