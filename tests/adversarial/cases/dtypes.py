"""Tensors of uint8 and other dtypes."""

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
