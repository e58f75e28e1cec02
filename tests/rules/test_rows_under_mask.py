"""Functions of rows that a mask chooses, written back where it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, embedded, fixed, fixed_among
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn
import torch.nn.functional as F

LEAST = 1e-3


def place_of(edges, x, eps=1e-6):
    edges[..., -1] += eps
    return torch.sum(x[..., None] >= edges, dim=-1) - 1


def bins(x, w, bound, inverse=False, least=LEAST):
    if torch.min(x) < -bound or torch.max(x) > bound:
        raise ValueError("outside")
    count = w.shape[-1]
    if least * count > 1.0:
        raise ValueError(f"too many: {count}")
    widths = least + (1 - least * count) * F.softmax(w, dim=-1)
    edges = F.pad(torch.cumsum(widths, dim=-1), pad=(1, 0), mode="constant", value=0.0)
    edges = 2 * bound * edges - bound
    edges[..., 0] = -bound
    edges[..., -1] = bound
    at = place_of(edges, x)[..., None]
    left = edges.gather(-1, at)[..., 0]
    width = widths.gather(-1, at)[..., 0]
    if inverse:
        root = x - left
        assert (root >= 0).all()
        return torch.sqrt(root), -torch.log(width)
    y = (x - left) / width
    return y * (1 - y), torch.log(width)


class Model(nn.Module):
    def __init__(self, bound=1.5, inverse=False):
        super().__init__()
        self.bound, self.inverse = bound, inverse

    def forward(self, x: torch.Tensor, w: torch.Tensor):
        bound, inverse = self.bound, self.inverse
        y, z = torch.zeros_like(x), torch.zeros_like(x)
        mask = (x >= -bound) & (x <= bound)
        y[mask], z[mask] = bins(x[mask], w[mask, :], bound, inverse=inverse)
        return y, z
"""
_CHECK = """    if torch.min(x) < -bound or torch.max(x) > bound:
        raise ValueError("outside")
"""
_LOOSE = _MODEL.replace(_CHECK, "")
_INPUTS = [
    "torch.tensor([[0.5, float('nan'), -1.0], [9.0, 1.5, -9.0]]), torch.linspace(-2, 3, 24).reshape(2, 3, 4)",
    "torch.tensor([0.25, 1.0, -7.0]), torch.ones(3, 5)",
]


def _reasons(source: str) -> list[str]:
    return [each.declined or "" for each in checked(source, select=("GM510",)).findings]


def test_a_function_of_chosen_rows_gets_all_rows() -> None:
    after, _ = fixed(_LOOSE, select=("GM510",))
    assert "bins(" in after.partition("is_compiling()")[2]
    assert "for each in (x, y, z)" in after
    assert fixed(after, select=("GM510",))[0] == after
    behaves(_LOOSE, after, _INPUTS)
    compiles(after, _INPUTS, scenarios=[Scenario(), Scenario(gradients="leaves")])


def test_a_nan_that_is_not_chosen_reaches_no_gradient_and_no_check() -> None:
    source = """
import torch
from torch import nn


def root(x):
    assert x.amin() >= 0
    assert (x >= 0).all()
    return x.sqrt() / x


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        mask = x > 0
        y = x.clone()
        chosen = x[mask]
        y[mask] = root(chosen)
        y[mask] *= 2
        return y
"""
    after, _ = fixed(source, select=("GM510",))
    compiles(after, ["torch.tensor([4.0, -1.0, 0.0, float('nan')])", "torch.tensor([[1.0], [-1.0]])"])


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("dim=-1), pad", "dim=0), pad", "works along the rows"),
        ("F.softmax(w, dim=-1)", "F.softmax(w, dim=axis)", "is not written out"),
        ("x - left) / width", "x - left.mean()) / width", "may not process each row independently"),
        ("x - left) / width", "x - left) / len(x)", "may not process each row independently"),
        ("count = w.shape[-1]", "count = w.shape[0]", "may be the number of selected rows"),
        ("count = w.shape[-1]", "count = x.numel()", "may not process each row independently"),
        ("[..., -1] = bound", "[-1] = bound", "selects among the rows"),
        ("(x - left) / width", "(x - edges) / width", "broadcasts rows of 1 and 2 dimensions"),
        ("return y * (1 - y)", "return y @ y", "multiplies matrices"),
        ("return y * (1 - y)", "return F.dropout(y)", "may not process each row independently"),
        ("return y * (1 - y)", "return y.flip(0)", "may not process each row independently"),
        ("y = (x - left)", "y = LAST = (x - left)", ""),
        ("    at = place_of", "    print(edges)\n    at = place_of", "may have side effects"),
        ("    at = place_of", "    if edges.sum() > 0:\n        edges = -edges\n    at = place_of", "may not process"),
        (
            "    at = place_of",
            "    while bound > 3:\n        bound = 1\n    at = place_of",
            "is more than a computation",
        ),
        ("def bins", "@torch.no_grad()\ndef bins", "cannot infer what `bins` does"),
        ("\n\nclass Model", "\n\nbins = F.relu\n\n\nclass Model", "broadcasts rows"),
        ("y[mask], z[mask]", "y[mask], z[~mask]", ""),
        ("    at = place_of", "    edges[x > 0] = x\n    at = place_of", "written where other rows say"),
    ],
)
def test_what_may_mix_rows_or_do_more_than_compute_is_declined(old: str, new: str, because: str) -> None:
    assert old in _LOOSE
    found = _reasons(_LOOSE.replace(old, new))
    assert [because in each for each in found] == [True]


def test_a_way_that_may_raise_without_rows_is_left_to_eager_mode() -> None:
    assert "and not inverse\n" in fixed(_LOOSE, select=("GM510",))[0]
    assert "and not inverse" not in fixed(_MODEL, select=("GM510",))[0]
    assert any("may raise where no row" in each for each in _reasons(_LOOSE.replace("if inverse:", "if True:")))


def test_rows_that_live_on_are_declined() -> None:
    source = _LOOSE.replace("        y[mask], z", "        y[mask] = rows = x[mask] * 2\n        y[mask], z")
    assert any("is written, which is not made of" in each for each in _reasons(source))
    source = _LOOSE.replace("        y[mask], z[mask] = ", "        kept, z[mask] = ").replace(
        "return y,", "return kept,"
    )
    assert any("comes before what is selected is written back" in each for each in _reasons(source))


def test_a_function_that_another_file_replaces_is_not_followed(tmp_path: Path) -> None:
    other = "import model\n\nmodel.bins = None\n"
    _, left = fixed_among(tmp_path, _LOOSE, {"other.py": other}, select=("GM510",))
    assert [each.partition(";")[0] for each in left] == ["`model.bins` is assigned in other.py"]


@pytest.mark.parametrize(
    "call",
    [
        "Model()(torch.rand(3, 2), torch.rand(3, 2, 4)[:, :1])",
        "Model(torch.tensor(1.5))(torch.rand(3), torch.rand(3, 4))",
        "Model()(torch.tensor(1.0), torch.rand(4))",
        "Model()(torch.empty(0), torch.empty(0, 4))",
    ],
)
def test_what_does_not_fit_runs_the_original(call: str) -> None:
    after, _ = fixed(_LOOSE, select=("GM510",))
    names: dict[str, object] = {}
    exec(compile(after.replace("torch.compiler.is_compiling()", "True"), "fixed", "exec"), names)
    before: dict[str, object] = {}
    exec(compile(_LOOSE, "before", "exec"), before)
    assert _outcome(call, names) == _outcome(call, before)


def _outcome(call: str, names: dict[str, object]) -> object:
    try:
        return [each.tolist() for each in eval(call.replace("torch.rand", "torch.ones"), names)]
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error), str(error)


_LOSSES = """
import torch
from torch import nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y, logits, labels):
        mask = labels != -1
        error = (x[mask] - y[mask]).abs()
        error = torch.where(error > 1, error, error * error)
        loss = error.mean() + (error / 2).sum() + F.mse_loss(x[mask], y[mask])
        loss = loss + F.cross_entropy(logits[mask], labels[mask], label_smoothing=0.25)
        return loss + F.smooth_l1_loss(x[mask], y[mask], beta=0.5, reduction="sum")
"""
_FLAT = "torch.tensor([[1.5, float('nan')], [-2.0, 0.5]]), torch.zeros(2, 2), torch.randn(2, 2, 3), "


def test_losses_of_chosen_rows_are_those_of_all_rows_under_the_mask() -> None:
    after, result = fixed(_LOSSES, select=("GM510",))
    assert len(result.fixes[0].applied) == 3
    assert "torch.where(mask.flatten(), _rows_under(mask, labels), -100)" in after
    inputs = [
        f"{_FLAT}torch.tensor([[1, -1], [-100, 2]])",
        f"{_FLAT}torch.full((2, 2), -1)",
        "torch.ones(3).bfloat16(), torch.zeros(3).bfloat16(), torch.randn(3, 2), torch.tensor([0, -1, 1])",
        "torch.randn(2, 2, 3), torch.ones(2, 2, 3), torch.randn(2, 2, 3), torch.tensor([[1, -1], [0, 2]])",
    ]
    behaves(_LOSSES, after, inputs[:1])
    compiles(after, inputs, scenarios=[Scenario(), Scenario(gradients="leaves")])


@pytest.mark.parametrize(
    "loss",
    [
        "F.cross_entropy(x[mask], y[mask], reduction='none').sum()",
        "F.mse_loss(x[mask], y[mask], None)",
        "F.mse_loss(x[mask], y[mask], weight=y)",
        "F.mse_loss(x[mask], y)",
        "F.cosine_similarity(x[mask], y[mask]).mean()",
        "(x[mask] - x[mask].mean()).sum()",
    ],
)
def test_losses_that_do_more_are_declined(loss: str) -> None:
    found = _reasons(_LOSSES.replace('F.smooth_l1_loss(x[mask], y[mask], beta=0.5, reduction="sum")', loss))
    assert sum(map(bool, found)) == 1


def test_what_stands_between_may_not_change_shapes() -> None:
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, w, mask: torch.Tensor):
        chosen = x[mask]
        w.squeeze_()
        x[mask] = chosen * w[mask]
        x[mask] = x[mask] * torch.where(x[mask] > 1)[0]
        x[mask] = x[mask] * f"{x[mask]}"
        return x
"""
    effect, mixed, where, text = _reasons(source)
    assert "`w.squeeze_()` may have side effects" in effect
    assert "combines rows with something other" in mixed
    assert "may not process each row independently" in where
    assert "combines rows with something other" in text


def test_a_parameter_that_is_called_mask_may_be_one() -> None:
    source = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x, y, loss_mask: torch.Tensor):
        return F.binary_cross_entropy_with_logits(x[loss_mask], y[loss_mask])
"""
    after, _ = fixed(source, select=("GM510",))
    inputs = ["torch.randn(2, 3), torch.rand(2, 3), torch.tensor([True, False])"]
    behaves(source, after, [*inputs, "torch.randn(3), torch.rand(3), torch.tensor([2, 0])"])
    compiles(after, inputs)


_IN_PLACE = """
import torch
from torch import nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        mask = x > 0
        z = torch.zeros_like(x)
        ...
        return z
"""


def test_masks_and_tensors_that_are_computed_in_place_are_selected_by() -> None:
    source = embedded(
        """
        z[~mask] = torch.exp(y[~mask])
        z[x > 1] += 2
        losses = F.l1_loss(x, y, reduction="none")
        left = torch.log(x[mask]) - y[mask]
        z = z.sum() + torch.sqrt(torch.pow(left, 2).mean() + torch.pow(left.mean(), 2))
        z = z + F.softplus(x * y)[mask].sum() + x.mul(y).masked_select(mask).mean()
        z = z + losses[losses != 0].mean()
        """,
        _IN_PLACE,
    )
    after, _ = fixed(source, select=("GM510",))
    some = "torch.tensor([[0.5, -1.0], [2.0, 3.0]]), torch.tensor([[0.5, 2.0], [1.0, -3.0]])"
    compiles(after, [some], scenarios=[Scenario(gradients="leaves")])


def test_what_is_computed_for_all_rows_is_copied_under_a_mask_that_has_a_name() -> None:
    source = embedded(
        """
        z = z + 1
        z[mask] = (x * (y / 2))[mask]
        z[~mask] = (x - 2 * y)[~mask]
        """,
        _IN_PLACE,
    )
    after, _ = fixed(source)
    given = ["torch.randn(2, 3), torch.randn(2, 3)", "torch.ones(2), torch.randn(2)", "-torch.ones(2), torch.randn(2)"]
    behaves(source, after, given)
    compiles(after, given, scenarios=[Scenario(gradients="leaves"), Scenario(gradients="off")])


@pytest.mark.parametrize(
    "value",
    [
        "x.mul_(2)[x > 0].sum()",
        "(x * y.sum())[mask].sum()",
        "(x * y[0])[mask].sum()",
        "x.softmax(-1)[mask].sum()",
        "(x[mask] * y)[mask].sum()",
        "F.mse_loss(x, y)[mask].sum()",
    ],
)
def test_what_may_have_another_shape_or_change_the_mask_is_declined(value: str) -> None:
    source = embedded(f"z = {value}", _IN_PLACE)
    assert fixed(source, select=("GM510",))[0] == source


@pytest.mark.parametrize("around", ["", "if mask.any():\n    "])
@pytest.mark.parametrize("change", ["mask[0]", "same = mask; same[0]", "view = mask.t(); view[0]", "mask.data"])
def test_a_mask_that_changes_between_its_uses_is_declined(change: str, around: str) -> None:
    inner = "    " if around else ""
    text = f"{around}rows = torch.exp(x[mask])\n{inner}{change} = False\n{inner}z[mask] = rows"
    source = embedded(text, _IN_PLACE)
    assert fixed(source, select=("GM510",))[0] == source
    other = embedded(text.replace(f"{change} = False\n{inner}", ""), _IN_PLACE)
    assert "_write_under" in fixed(other, select=("GM510",))[0]


def test_of_a_mask_turned_round_the_header_asks_what_it_asks_of_the_mask() -> None:
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask):
        x = x + 1
        x[~mask] += 1
        return x
"""
    after, _ = fixed(source, select=("GM510",))
    assert "and isinstance(mask, torch.Tensor)\n            and mask.dtype == torch.bool\n" in after
    assert "(~mask)" not in after
    inputs = ["torch.ones(3), torch.tensor([True, False, True])", "torch.ones(3), torch.tensor([1, 0, 2])"]
    behaves(source, after, inputs)
    compiles(after, inputs[:1])


_ITSELF = """
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        y = {made}
        y[y > 0.5] -= 1
        return y
"""


@pytest.mark.parametrize("made", ["np.sqrt(x).T", "np.sqrt(x).astype(np.float32)[0]", "np.linalg.inv(x).T.copy()"])
def test_rows_of_arrays_are_no_rows_of_tensors(made: str) -> None:
    source = _ITSELF.format(made=made)
    assert fixed(source, select=("GM510",))[0] == source


def test_a_tensor_that_is_its_own_mask_has_the_shape_of_the_mask() -> None:
    source = _ITSELF.format(made="x + 1")
    after, _ = fixed(source, select=("GM510",))
    assert "y.copy_(torch.where(y > 0.5, y - 1, y))" in after
    assert ".shape" not in after[: after.index("y.copy_(torch.where(y > 0.5")].rpartition("def forward")[2]
    inputs = ["torch.linspace(-2, 1, 6).reshape(2, 3)", "torch.zeros(0, 3)", "torch.tensor(1.0)", "torch.arange(3) - 1"]
    behaves(source, after, inputs)
    compiles(after, inputs, strict=False)
