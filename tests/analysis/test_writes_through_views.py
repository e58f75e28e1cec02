"""A product that compiled code does not leave out is no alias: writes into views of its factor must be found."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn

QUICK = True


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.SiLU({made})

    def forward(self, x: torch.Tensor, mask=None):
        if mask is not None and not torch.all(mask == 1):
            x = x * mask
        {after}
        return x
"""
_VIEWS = """torch.narrow(x, 0, 0, 1);torch.select(x, 0, 0);torch.movedim(x, 0, 1);torch.swapaxes(x, 0, 1)
torch.diagonal(x);x.unfold(0, 1, 1);torch.einsum('ij->ji', x);F.dropout(x, training=False);x.expand(4, 4);x.unbind()[0]
torch.chunk(x, 2)[0];x.real;torch.moveaxis(x, 0, 1);x.type_as(mask);x.as_strided((1, 1), (1, 1));torch.ravel(x)
torch.broadcast_to(x, (4, 4));x.to(torch.float32);x[0];+x;x.T;torch.reshape(x, (-1,));(x, mask)[0];[x][0];list(x)[0]"""


def _model(after: str, made: str = "") -> str:
    return _MODEL.format(after=after.replace("\n", "\n        "), made=made)


@pytest.mark.parametrize("view", _VIEWS.replace("\n", ";").split(";"))
def test_a_write_into_a_view_is_a_write(view: str) -> None:
    declined(_model(f"y = {view}\ny.add_(1)"), because="`y.add_(1)` in `Model.forward` may write")


@pytest.mark.parametrize(
    "write",
    """F.silu(x, inplace=True);F.silu(x, True);F.silu(x, inplace=QUICK);F.silu(x, QUICK);F.leaky_relu(x, 0.1, True)
    F.elu(x, inplace=True);F.celu(x, 1.0, True);F.selu(x, True);F.mish(x, inplace=QUICK);F.threshold(x, 0.0, 1.0, True)
    torch.abs(mask, out=x);torch.relu_(x);F.elu_(x);x.copy_(mask);x.t_();F.hardtanh(x, inplace=True);F.relu(*(x, True))
    F.relu(x, **{'inplace': QUICK});nn.init.zeros_(x);helper(x);self.other(x);torch._foreach_add_([x], 1)
    F.batch_norm(mask, x[0], x[0], training=True);F.embedding(mask, x, max_norm=1.0);x.resize_(2)""".replace(
        "\n", ";"
    ).split(";"),
)
def test_what_may_write_is_a_write(write: str) -> None:
    declined(_model(write.strip()), because="may write in place to the tensor or a view of it")


@pytest.mark.parametrize("made", ["inplace=True", "True", "inplace=QUICK", "*(True,)"])
def test_a_layer_made_to_work_in_place_writes(made: str) -> None:
    declined(_model("y = self.act(x)", made), because="`self.act(x)` in `Model.forward` may write")


def test_a_view_bound_by_match_is_a_view() -> None:
    declined(_model("match x:\n    case y:\n        y.add_(1)"), because="`y.add_(1)` in `Model.forward` may write")


def test_a_view_kept_in_a_list_is_a_view() -> None:
    declined(
        _model("seen = []\nseen.append(x)\nseen[0].add_(1)"),
        because=("may write in place to the tensor or a view of it"),
    )
    declined(
        _model("seen = ()\nseen = seen + (x,)\nseen[0].add_(1)"),
        because=("may write in place to the tensor or a view of it"),
    )


def test_code_that_writes_elsewhere_is_fixed_and_compiles() -> None:
    before = _model("y = torch.narrow(x, 0, 0, 1) + 1\ny.add_(1)\nx = self.act(x) + F.silu(x) + y")
    after, _ = fixed(before)
    assert after != before
    compiles(after, ["torch.ones(4, 4), torch.ones(4, 4).long()", "torch.ones(4, 4), torch.eye(4).long()"])


_HALVES = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask=None):
        one, other = {halves}
        if mask is not None and not torch.all(mask == 1):
            one = one * mask
        other.add_(1)
        return one + other
"""


@pytest.mark.parametrize(
    "halves",
    [
        "x.chunk(2)",
        "(x * 2)[:1].expand(2, 4).chunk(2)",
        "torch.unbind((x * 2)[0].expand(2, 4))",
        "(x * 2).unfold(0, 2, 1).unbind()",
        "(x * 2).as_strided((2, 4), (0, 1)).unbind()",
    ],
)
def test_parts_that_may_overlap_are_one_memory(halves: str) -> None:
    declined(_HALVES.format(halves=halves), because="`other.add_(1)` in `Model.forward` may write")


@pytest.mark.parametrize("halves", ["(x * 2).chunk(2)", "torch.split(x.exp().t(), 2)", "(x + 1).t().unbind()"])
def test_parts_of_a_new_tensor_are_apart(halves: str) -> None:
    source = _HALVES.format(halves=halves)
    assert fixed(source)[0] != source


_LAYERS = """
import torch
from torch import nn


class Scale(nn.Module):
    def forward(self, x, by=2):
        {own}
        return x


class Shift(nn.Module):
    def forward(self, x, more=None):
        y = x + 1
        y += 1
        return y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList()
        self.layers.append(Shift())
        {put}

    def forward(self, x: torch.Tensor, mask=None):
        if mask is not None and not torch.all(mask == 1):
            x = x * mask
        return self.layers[-1](x{given})


class Other(Model):
    def __init__(self):
        super().__init__()
        {other}
"""


@pytest.mark.parametrize(
    ("own", "put", "given", "other", "writes"),
    [
        ("x = x * by", "self.layers.append(Scale())", "", "pass", False),
        ("x *= by", "self.layers.append(Scale())", "", "pass", True),
        ("x *= by", "self.layers.append(Scale())", ", more=1", "pass", False),
        ("x *= by", "pass", "", "self.layers.append(Scale())", True),
        ("x *= by", "pass", "", "pass", False),
        ("x = x * by", "self.layers.extend(make())", "", "pass", True),
        ("y = x.view(-1)\n        y.add_(1)", "self.layers.append(Scale())", "", "pass", True),
        ("x = x + 1\n        x.add_(1)", "self.layers.append(Scale())", "", "pass", False),
    ],
)
def test_layers_of_a_list_are_looked_into(own: str, put: str, given: str, other: str, writes: bool) -> None:
    source = _LAYERS.format(own=own, put=put, given=given, other=other)
    if writes:
        declined(source, because="may write in place to the tensor or a view of it")
    else:
        assert "is_compiling" in fixed(source)[0]
