"""Constants that overflow, and gradient mode."""

from tests.adversarial.case import Group

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
