"""What is given is no tensor: arrays of NumPy and other things."""

from tests.adversarial.case import Group

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
