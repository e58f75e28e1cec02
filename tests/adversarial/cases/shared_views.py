"""Views of one tensor that are written."""

from tests.adversarial.case import Group

views = Group("views")
for name, view in {
    "dropout without training": "F.dropout(h, 0.5, training=False)",
    "nn.Dropout in eval": "self.drop(h)",
    "nn.Identity": "self.same(h)",
    "nn.Flatten": "self.flat(h)",
    "einsum": "torch.einsum('ij->ji', h)",
    "unfold": "h.unfold(1, 2, 1)",
    "narrow": "torch.narrow(h, 1, 0, 2)",
    "narrow method": "h.narrow(1, 0, 2)",
    "select": "h.select(1, 0)",
    "movedim": "torch.movedim(h, 0, 1)",
    "swapaxes": "h.swapaxes(0, 1)",
    "diagonal": "torch.diagonal(h)",
    "expand": "h[:1].expand(4, 3)",
    "unbind": "h.unbind(0)[0]",
    "chunk": "torch.chunk(h, 2, dim=0)[0]",
    "split": "h.split(1)[0]",
    "tensor_split": "torch.tensor_split(h, 2)[0]",
    "to of the same dtype": "h.to(h.dtype)",
    "float": "h.float()",
    "type_as": "h.type_as(h)",
    "contiguous": "h.contiguous()",
    "real": "torch.real(h)",
    "broadcast_to": "torch.broadcast_to(h, (2, 3))",
    "broadcast_tensors": "torch.broadcast_tensors(h, h)[0]",
    "atleast_2d": "torch.atleast_2d(h)",
    "reshape": "torch.reshape(h, (3, 2))",
    "ravel": "torch.ravel(h)",
    "as_strided": "h.as_strided((2,), (1,))",
    "squeeze": "h.squeeze()",
    "detach": "h.detach()",
    "data": "h.data",
    "mT": "h.mT",
    "asarray": "torch.asarray(h)",
    "as_tensor": "torch.as_tensor(h)",
    "meshgrid": "torch.meshgrid(h[0], h[1], indexing='ij')[0]",
    "view_as": "h.view_as(h)",
    "index with None": "h[None]",
    "index with ellipsis": "h[...]",
    "sum to its own size": "h.sum_to_size(2, 3)",
    "rfloordiv by unflatten": "h.unflatten(1, (3, 1))",
    "hsplit": "torch.hsplit(h, [1])[0]",
    "nan_to_num of integers": "torch.nan_to_num(h)",
    "pad of nothing": "F.pad(h, (0, 0))",
    "max_pool of one": "F.max_pool1d(h, 1)",
    "interpolate to its own size": "F.interpolate(h[None], size=3)[0]",
    "roll": "torch.roll(h, 0, 0)",
    "conj": "torch.conj(h)",
    "resolve_conj": "h.resolve_conj()",
    "positive": "+h",
    "torch.positive": "torch.positive(h)",
    "copy": "copy.copy(h)",
}.items():
    views.add(
        f"{name}, written behind a select",
        f"""
        h = x * 1.5
        if h.sum() > 0:
            y = {view}
        else:
            y = {view}
        with torch.no_grad():
            y.mul_(2.0)
        return y, h
        """,
        init="self.drop = nn.Dropout(0.5)\nself.same = nn.Identity()\nself.flat = nn.Flatten()",
        top="import copy",
        training=(False,),
    )
    views.add(
        f"{name}, one arm",
        f"""
        h = x * 1.5
        y = h
        if h.sum() > 0:
            y = {view}
        h.detach().add_(1.0)
        return y, h
        """,
        init="self.drop = nn.Dropout(0.5)\nself.same = nn.Identity()\nself.flat = nn.Flatten()",
        top="import copy",
        training=(False,),
        varied=False,
    )
views.add(
    "match with a capture",
    """
    y = x * 2.0
    match y:
        case z:
            pass
    if y.sum() > 0:
        y = y.clamp(max=1.0)
    z.add_(1.0)
    return y, z
    """,
)
views.add(
    "match a sequence",
    """
    y = x * 2.0
    pair = (y, y + 1)
    match pair:
        case (first, second):
            first.mul_(2.0)
    if y.sum() > 0:
        y = torch.clamp(y, max=1.0)
    else:
        y = y + 0.0
    first.add_(1.0)
    return y, first
    """,
)
views.add(
    "walrus keeps an alias",
    """
    if (y := x * 2.0).sum() > 0:
        z = y
    else:
        z = y + 1.0
    y.add_(1.0)
    return y, z
    """,
)
views.add(
    "alias in a list",
    """
    h = x * 2.0
    kept = [h]
    if h.sum() > 0:
        h = torch.relu(h)
    kept[0].add_(1.0)
    return h, kept[0]
    """,
)
views.add(
    "alias in an attribute",
    """
    h = x * 2.0
    self.kept = h
    if h.sum() > 0:
        h = h.clamp(max=1.0)
    self.kept.add_(1.0)
    return h
    """,
)
views.add(
    "alias in a closure",
    """
    h = x * 2.0

    def later():
        h.add_(1.0)
        return h

    y = h
    if h.sum() > 0:
        y = h.clamp(max=1.0)
    return later(), y
    """,
)
views.add(
    "product with a mask, narrow and add_",
    """
    mask = torch.ones(2, 3, dtype=torch.bool)
    h = x * 2.0
    if not mask.all():
        h = h * mask
    part = torch.narrow(h, 1, 0, 2)
    part.add_(1.0)
    return h, x
    """,
)
views.add(
    "product with a mask, narrow of the factor",
    """
    part = torch.narrow(x, 1, 0, 2)
    h = x * 2.0
    if mask is not None and not mask.all():
        h = x * mask[:, None]
    part.detach().add_(1.0)
    return h, part
    """,
    args="x, mask=None",
    inputs=[
        "(torch.ones(2, 3), torch.tensor([True, False]))",
        "(torch.ones(2, 3), torch.tensor([True, True]))",
        "(torch.zeros(2, 3), None)",
    ],
    varied=False,
)
