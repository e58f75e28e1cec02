"""Operations that write where a reader expects a fresh result: `inplace=`, `out=`, views, writes between."""

from tests.adversarial.case import Group

inplace = Group("inplace")

for name, call in {
    "relu, keyword": "F.relu(x, inplace=True)",
    "relu, positional": "F.relu(x, True)",
    "silu, keyword": "F.silu(x, inplace=True)",
    "mish, keyword": "F.mish(x, inplace=True)",
    "leaky_relu, third position": "F.leaky_relu(x, 0.1, True)",
    "elu, keyword": "F.elu(x, inplace=True)",
    "celu, third position": "F.celu(x, 1.0, True)",
    "selu, positional": "F.selu(x, True)",
    "hardswish, keyword": "F.hardswish(x, inplace=True)",
    "hardsigmoid, keyword": "F.hardsigmoid(x, inplace=True)",
    "hardtanh, keyword": "F.hardtanh(x, -1.0, 1.0, inplace=True)",
    "relu6, keyword": "F.relu6(x, inplace=True)",
    "threshold, fourth position": "F.threshold(x, 0.1, 0.0, True)",
    "threshold_": "F.threshold_(x, 0.1, 0.0)",
    "relu_ of torch": "torch.relu_(x)",
    "module constant": "F.silu(x, inplace=INPLACE)",
    "keywords from a dict": "F.relu(x, **OPTIONS)",
    "arguments from a tuple": "F.relu(x, *FLAGS)",
    "clamp_ of torch": "torch.clamp_(x, -1.0, 1.0)",
    "nan_to_num_ of torch": "torch.nan_to_num_(x)",
    "dropout without training": "F.dropout(x, 0.5, False, True)",
    "rrelu": "F.rrelu(x, 0.1, 0.2, False, True)",
    "alias of the function": "act(x, inplace=True)",
    "functools.partial": "act_in_place(x)",
    "lambda": "quick(x)",
}.items():
    inplace.add(
        name,
        f"""
        x = x * 1.5
        before = x
        if x.sum() > 0:
            y = {call}
        else:
            y = x - 1.0
        return y, before, x
        """,
        top="""
        import functools
        INPLACE = True
        OPTIONS = {"inplace": True}
        FLAGS = (True,)
        act = F.relu
        act_in_place = functools.partial(F.relu, inplace=True)
        quick = lambda t: t.mul_(2.0)
        """,
    )

for name, layer in {
    "nn.SiLU": "nn.SiLU(inplace=True)",
    "nn.Mish": "nn.Mish(True)",
    "nn.Hardsigmoid": "nn.Hardsigmoid(inplace=True)",
    "nn.LeakyReLU": "nn.LeakyReLU(0.1, True)",
    "nn.Dropout in place": "nn.Dropout(0.5, inplace=True)",
    "nn.Threshold": "nn.Threshold(0.1, 0.0, True)",
    "nn.ReLU in a Sequential": "nn.Sequential(nn.ReLU(inplace=True))",
    "constructor argument by a name": "nn.ReLU(inplace=FAST)",
    "nn.ELU by dict": "nn.ELU(**SETTINGS)",
    "own class": "Doubling()",
}.items():
    inplace.add(
        f"layer, {name}",
        """
        h = x * 1.5
        if h.sum() > 0:
            y = self.act(h)
        else:
            y = h - 1.0
        return y, h
        """,
        init=f"self.act = {layer}",
        top="""
        FAST = True
        SETTINGS = {"inplace": True}


        class Doubling(nn.Module):
            def forward(self, t):
                return t.mul_(2.0)
        """,
    )

inplace.add(
    "in one arm, early return",
    """
    h = x + 1.0
    if h.min() < 0:
        return F.relu(h, inplace=True), h
    return h * 2.0, h
    """,
)
inplace.add(
    "write to an alias in both arms",
    """
    h = x + 1.0
    kept = h
    if h.min() < 0:
        h = h.mul_(2.0)
    else:
        h = h.add_(1.0)
    return h, kept
    """,
)
inplace.add(
    "ternary",
    """
    h = x + 1.0
    y = F.silu(h, inplace=True) if h.sum() > 0 else h
    return y, h
    """,
)
inplace.add(
    "overflow guard with clamp_",
    """
    h = x * 2.0
    other = h
    if torch.isinf(h).any():
        h = h.clamp_(min=-10.0, max=10.0)
    return h, other
    """,
)
inplace.add(
    "overflow guard with out=",
    """
    h = x * 2.0
    other = h
    if torch.isinf(h).any() or torch.isnan(h).any():
        h = torch.clamp(h, min=-10.0, max=10.0, out=h)
    return h, other
    """,
)
inplace.add(
    "masked write through an alias",
    """
    h = x * 2.0
    other = h.view(-1)
    mask = h > 1.0
    if mask.any():
        h = h.masked_fill_(mask, 0.0)
    return h, other
    """,
)
inplace.add(
    "masked write of a parameter's data",
    """
    mask = self.weight > 0.5
    if mask.any():
        self.weight.data[mask] = 0.0
    return x * self.weight
    """,
    init="self.weight = nn.Parameter(torch.tensor([0.1, 0.7, 0.9]))",
)
inplace.add(
    "augmented assignment of an alias",
    """
    h = x * 2.0
    other = h
    if h.sum() > 0:
        h += 1.0
    return h, other
    """,
)
inplace.add(
    "augmented assignment of the argument",
    """
    if x.sum() > 0:
        x += 1.0
    return x * 2.0
    """,
)

out = Group("out=")
for name, call in {
    "add": "torch.add(h, 1.0, out=h)",
    "clamp": "torch.clamp(h, 0.0, 1.0, out=h)",
    "another tensor": "torch.mul(h, 2.0, out=other)",
    "buffer": "torch.mul(h, 2.0, out=self.room)",
    "a view of it": "torch.abs(h, out=h[:])",
    "matmul": "torch.matmul(h, self.eye, out=other)",
    "where": "torch.where(h > 0, h, -h, out=other)",
    "keywords from a dict": "torch.abs(h, **{'out': h})",
    "out=None": "torch.abs(h, out=None)",
}.items():
    out.add(
        name,
        f"""
        h = x * 1.5
        other = torch.empty_like(h)
        other.zero_()
        with torch.no_grad():
            h = h.detach()
            if h.sum() > 0:
                y = {call}
            else:
                y = h + 1.0
        return y, h, other, self.room
        """,
        init="self.register_buffer('room', torch.zeros(2, 3))\nself.register_buffer('eye', torch.eye(3))",
        varied=False,
    )
out.add(
    "early return",
    """
    h = (x * 1.5).detach()
    if h.sum() > 0:
        return torch.neg(h, out=h), h
    return h + 1, h
    """,
    varied=False,
)
