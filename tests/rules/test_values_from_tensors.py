"""Numbers, flags and rows that are read out of tensors: what is found across calls, and what is left alone."""

from __future__ import annotations

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_HEAD = """
import torch
from torch import nn

"""
_GRID = (
    _HEAD
    + """
class Layer(nn.Module):
    def forward(self, x, shapes=None, shape_list=None):
        if (shapes[:, 0] * shapes[:, 1]).sum() != x.shape[0]:
            raise ValueError("sizes do not fit")
        return x


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def points(self, shapes):
        return torch.cat([torch.linspace(0, 1, height * width) for height, width in shapes])

    def forward(self, x, shapes, shape_list):
        for layer in self.layers:
            x = layer(x, shapes=shapes, shape_list=shape_list)
        return x + self.points(shapes)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def forward(self, maps):
        shape_list = []
        for each in maps:
            height, width = each.shape
            shape_list.append((height, width))
        shapes = torch.as_tensor(shape_list, dtype=torch.long)
        return self.encoder(torch.cat([each.flatten() for each in maps]), shapes, shape_list)
"""
)


def codes(source: str) -> list[str]:
    return [finding.code for finding in checked(source).findings if finding.fixable]


def test_a_list_is_known_two_calls_below_the_tensor_that_was_built_from_it() -> None:
    after, _ = fixed(_GRID, select=("GM302", "GM402"))
    assert "sum(row[0] * row[1] for row in shape_list)" in after
    assert "return x + self.points(shape_list)" in after


def test_a_call_that_gives_another_list_takes_the_relation_away() -> None:
    other = _GRID.replace(
        "return x + self.points", "x = self.layers[0](x, shapes, [(1, 1)])\n        return x + self.points"
    )
    assert "GM302" not in codes(other)
    assert "GM402" in codes(other)


def test_a_list_of_tensors_is_not_taken_for_numbers() -> None:
    assert "GM402" not in codes(_GRID.replace("shape_list.append((height, width))", "shape_list.append(each.sum())"))


def test_a_tensor_that_is_changed_in_place_no_longer_has_the_numbers_of_its_list() -> None:
    changed = _GRID.replace("        return self.encoder(", "        shapes.add_(1)\n        return self.encoder(")
    assert {"GM302", "GM402"}.isdisjoint(codes(changed))


def test_a_list_that_grows_after_the_tensor_was_built_is_not_used() -> None:
    changed = _GRID.replace(
        "        return self.encoder(", "        shape_list.append((1, 1))\n        return self.encoder("
    )
    assert {"GM302", "GM402"}.isdisjoint(codes(changed))


def test_a_list_that_shrinks_before_the_tensor_is_built_is_not_used() -> None:
    changed = _GRID.replace("        shapes = torch", "        shape_list.pop()\n        shapes = torch")
    assert changed != _GRID
    assert {"GM302", "GM402"}.isdisjoint(codes(changed))


def test_a_function_that_uses_numbers_as_tensors_keeps_getting_the_tensor() -> None:
    source = _GRID.replace("linspace(0, 1, height", "linspace(0, height.float(), height")
    declined(source, because="does not exist on a Python number", select=("GM402",))


def test_a_function_whose_sums_may_be_needed_as_tensors_keeps_getting_the_tensor() -> None:
    source = _GRID.replace("torch.linspace(0, 1, height * width)", "torch.ones(height) + (height * width).sum()")
    declined(source, because="does not exist on a Python number", select=("GM402",))


_LOOP = (
    _HEAD
    + """
def segments(ids: torch.LongTensor):
    starts = torch.nonzero(ids == 1)
    result = torch.zeros_like(ids)
    for i in range(starts.shape[0]):
        result[starts[i]] = i
    return result


class Model(nn.Module):
    def forward(self, ids: torch.LongTensor):
        return segments(ids)
"""
)


def test_a_function_that_draws_random_numbers_becomes_no_operator() -> None:
    source = _LOOP.replace("result[starts[i]] = i", "result[starts[i]] = torch.randint(0, 9, ())")
    declined(source, because="draws random numbers", select=("GM504",))


def test_a_function_that_may_return_its_argument_becomes_no_operator() -> None:
    declined(_LOOP.replace("torch.zeros_like(ids)", "ids.view(-1)"), because="argument", select=("GM504",))


def test_a_function_whose_calls_change_something_becomes_no_operator() -> None:
    source = _LOOP.replace("result[starts[i]] = i", "result[starts[i]] = other(i)")
    assert "GM504" in codes(source + "\n\ndef other(i):\n    return i\n")
    counting = "\n\nSEEN = []\n\n\ndef other(i):\n    SEEN.append(i)\n    return i\n"
    declined(source + counting, because="may have side effects", select=("GM504",))
    declined(source + "\n\nfrom elsewhere import other\n", because="may have side effects", select=("GM504",))


def test_a_torch_without_custom_operators_runs_the_loop() -> None:
    after, _ = fixed(_LOOP, select=("GM504",), target_torch=(2, 2))
    assert "_is_torch_2_4_dynamo_compiling()\n        and" in after
    assert "@_since_torch_2_4(\n    lambda: torch.library.custom_op(\n" in after


def test_nan_is_neither_more_nor_less_than_a_number() -> None:
    before = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        y = x * 0.5
        if not y.sum().item() > 3:
            y = y.sigmoid()
        return y
"""
    after, _ = fixed(before)
    inputs = ["torch.ones(2, 4)", "torch.ones(2, 4) * 9", "torch.tensor([1.0, nan])"]
    behaves(before, after, inputs)
    compiles(after, inputs, scenarios=(Scenario(gradients="off"),))
