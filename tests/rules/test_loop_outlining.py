"""Loops that fill tensors with what the data says, moved into a function that torch.compile calls as one operator."""

from __future__ import annotations

import types
from textwrap import dedent
from typing import Any

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, embedded, fixed, noop
from tests.tools.observe import Scenario

_SETUP = """
import torch
from torch import nn


def counted(row, n):
    return torch.isin(row, n)


def drawn(row):
    return torch.rand_like(row)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 2
        self.codes = [1, 2, 3]
        self.proj = nn.Linear(4, 4)

    def forward(self, mask: torch.BoolTensor, pad=0, values=None):
        ...
        return places * 2
"""
_PLACES = "places = torch.full((mask.shape[0], 4), -1)\n"
_LOOP = "for row, chosen in enumerate(mask):\n    found = torch.where(chosen)[0]\n"
_INPUTS = [
    "torch.tensor([[True, False, True, False]])",
    "torch.tensor([[False, True, True, True], [False] * 4])",
    "torch.tensor([[1, 0, 2, 3], [0] * 4, [1] * 4])",
]


def written(statements: str) -> str:
    return embedded(statements, _SETUP)


@pytest.mark.parametrize(
    "statements",
    [
        _PLACES + _LOOP + "    places[row, : found.shape[0]] = found * self.step",
        _PLACES + _LOOP + "    if len(found) > 2:\n        continue\n    places[row][found] = pad",
        _PLACES + _LOOP + "    if found.shape[0] > 2:\n        break\n    places[row, found] += 1",
        _PLACES + "codes = self.codes\n" + _LOOP + "    places[row, found] = codes[0]\n    places[row, -2:] = "
        "torch.tensor([codes[1:]], device=mask.device)",
        _PLACES + _LOOP + "    if counted(chosen, pad).sum():\n        places[row, found] = 1",
        "device = mask.device\n" + _PLACES + _LOOP + "    places[row, found] = torch.zeros(1, dtype=torch.long, "
        "device=device)",
        "edges = torch.arange(0.5, 4, 1 / self.step)\n" + _PLACES + _LOOP + "    places[row, : found.shape[0]] = "
        "torch.bucketize(found / 3, edges)",
        "places = torch.zeros(mask.shape, dtype=torch.float16)\n" + _LOOP + "    places[row, : found.shape[0]] = 0.5",
        "other = torch.zeros(mask.shape[0], dtype=torch.long)\n" + _PLACES + _LOOP + "    places[row, found] = 1\n"
        "    other[row] = found.sum()\nplaces = places + other[:, None]",
        _PLACES + _LOOP + "    found += 1\n    places[row][found - 1] = found",
        _PLACES + "last = 1\n" + _LOOP + "    last = last + 1\n    places[row, found] = last",
        _PLACES + "if pad < 1:\n    for row, chosen in enumerate(mask):\n        found = torch.where(chosen)[0]\n"
        "        places[row, found] = 1",
        "for row in range(2):\n    mask = mask * 1\n" + _PLACES + _LOOP + "    places[row, found] = 1",
    ],
)
def test_an_operator_fills_what_the_loop_fills(statements: str) -> None:
    after, result = fixed(written(statements), select=("GM504",))
    assert [finding.code for fix in result.fixes for finding in fix.applied] == ["GM504"]
    behaves(written(statements), after, _INPUTS)
    compiles(after, _INPUTS[1:], scenarios=[Scenario(gradients="off")])
    assert not [each for each in checked(after).findings if each.declined is None]


def test_what_is_not_as_the_conditions_say_runs_the_loop() -> None:
    source = written(_PLACES + _LOOP + "    places[row, found] = pad")
    after, _ = fixed(source)
    floating = "torch.tensor([[1.0, 0.0, 2.0, 3.0]])"
    inputs = [floating, f"{_INPUTS[0]}, True", f"{_INPUTS[1]}, 2.5", f"{_INPUTS[1]}, None", f"[{_INPUTS[0]}[0]]"]
    behaves(source, after, inputs)
    compiles(after, inputs[:3], strict=False)


def test_an_error_in_the_loop_leaves_the_operator_as_it_is() -> None:
    statements = (
        _PLACES
        + _LOOP
        + "    if len(found) > 2:\n        raise ValueError(f'{len(found)} in {row}')\n"
        + ("    places[row, found] = 1")
    )
    after, _ = fixed(written(statements), select=("GM504",))
    behaves(written(statements), after, _INPUTS)
    compiles(after, _INPUTS, scenarios=[Scenario(gradients="off")])


@pytest.mark.parametrize(
    ("statements", "because"),
    [
        (_PLACES + _LOOP + "    places[row, found] = 1\nplaces = places + row", "`row` is used after the loop"),
        ("kept = " + _PLACES + _LOOP + "    places[row, found] = 1", "not made just before"),
        (
            _PLACES + "if places.view(-1)[0] < 1:\n    for row, chosen in enumerate(mask):\n"
            "        places[row, chosen.nonzero()] = 1",
            "may refer to `places`",
        ),
        (
            _PLACES + "with torch.no_grad():\n    for row, chosen in enumerate(mask):\n"
            "        places[row, chosen.nonzero()] = 1",
            "not made just before",
        ),
        ("places = mask\n" + _LOOP + "    places[row, found] = 1", "not made just before"),
        (_PLACES + "kept = places.view(-1)\n" + _LOOP + "    places[row, found] = 1", "may refer to `places`"),
        (_PLACES + _LOOP + "    places[row, found] = drawn(chosen).long()", "may have side effects"),
        (_PLACES + _LOOP + "    places[row, found] = 1\n    chosen[0] = False", "the loop changes `mask`"),
        (_PLACES + _LOOP + "    places[row, found] = 1\n    chosen.fill_(False)", "the loop changes `mask`"),
        (_PLACES + _LOOP + "    places[row, found] = 1\n    chosen += 1", "may change `chosen` in place"),
        (_PLACES + _LOOP + "    places[row, found] = 1\n    self.last = found", "the loop changes `self.last`"),
        (_PLACES + _LOOP + "    places[row, found] = self.proj.weight.shape[0]", "is a number"),
        (
            _PLACES + _LOOP + "    for code in self.codes:\n        places[row, found] = code",
            "iterates over `self.codes`",
        ),
        (_PLACES + _LOOP + "    places[row, found] = len(self.codes)", "iterates over `self.codes`"),
        (_PLACES + _LOOP + "    places[row, found] = values['first']", "`values` is neither a Tensor nor a number"),
        (_PLACES + "seen = set()\n" + _LOOP + "    seen.add(row)\n    places[row, found] = 1", "may have side effects"),
        (_PLACES + "rows = [2, 1]\n" + _LOOP + "    rows.sort()\n    places[row, found] = 1", "may have side effects"),
        (_PLACES + _LOOP + "    print(found)\n    places[row, found] = 1", "may have side effects"),
        (_PLACES + _LOOP + "    torch.add(found, 1, out=mask)\n    places[row, found] = 1", "may have side effects"),
        (_PLACES + _LOOP + "    places[row, found] = 1\nelse:\n    pad = 1", "has an `else`"),
        (_PLACES + _LOOP + "    if len(found) > 2:\n        return places\n    places[row, found] = 1", "leaves the"),
        (_PLACES + _LOOP + "    places[row, found] = 1\nplaces = places + len(locals())", "is used after the loop"),
        (_PLACES + "def late():\n    return row\n" + _LOOP + "    places[row, found] = 1", "is used after the loop"),
        (_PLACES + "def late():\n    return places[0]\n" + _LOOP + "    places[row, found] = 1", "uses `places`"),
        ("if pad:\n    base = 1\n" + _PLACES + _LOOP + "    places[row, found] = base", "may be unbound"),
        ("places = mask.clone()\n" + _LOOP + "    places[row, found] = self.__dict__['step']", "cannot infer"),
    ],
)
def test_a_loop_that_does_more_than_fill_tensors_is_left_alone(statements: str, because: str) -> None:
    declined(written(statements), because=because, select=("GM504",))


def test_loops_in_one_file_get_operators_of_their_own() -> None:
    first = _PLACES + _LOOP + "    places[row, found] = 1\n"
    source = written(first + "kept = places\n" + first.replace("= 1", "= 2") + "places = places + kept")
    after, _ = fixed(source, select=("GM504",))
    assert "        _fill_places(places, mask)\n" in after
    assert "        _fill_places_2(places, mask)\n" in after
    assert '_operator_name("_fill_places_operator_2", __name__)' in after
    assert "        _fill_places_operator_2(places, mask)\n        return\n" in after
    behaves(source, after, _INPUTS)
    compiles(after, _INPUTS, scenarios=[Scenario(gradients="off")])


def test_two_loops_with_one_text_share_an_operator() -> None:
    first = _PLACES + _LOOP + "    places[row, found] = 1\n"
    source = written(first + "kept = places\n" + first + "places = places + kept")
    after, _ = fixed(source, select=("GM504",))
    assert after.count("custom_op(") == 1
    assert after.count("        _fill_places(places, mask)\n") == 2
    compiles(after, _INPUTS, scenarios=[Scenario(gradients="off")])


def test_comments_move_with_the_loop_and_the_indentation_is_the_files_own() -> None:
    source = written(_PLACES + _LOOP + "    # what was found\n    places[row, found] = 1").replace("    ", "\t")
    after, _ = fixed(source, select=("GM504",))
    assert after.count("# what was found") == 1
    assert "\t\t# what was found\n\t\tplaces[row, found] = 1\n" in after
    behaves(source, after, _INPUTS)


def test_a_torch_that_may_be_old_is_asked_for_the_tag_for_cuda_graphs() -> None:
    source = written(_PLACES + _LOOP + "    places[row, found] = 1")
    assert "tags=(torch.Tag.cudagraph_unsafe,)," in fixed(source, target_torch=(2, 9))[0]
    for target in (None, (2, 4)):
        asked = 'if hasattr(torch.Tag, "cudagraph_unsafe")'
        assert asked in fixed(source, target_torch=target)[0]
    declined(source, because="(torch 2.4)", target_torch=(2, 3))


def test_what_the_operator_runs_needs_no_reason_of_its_own() -> None:
    source = written(_PLACES + _LOOP + "    if chosen.sum() > 1:\n        places[row, found] = 1")
    assert [finding.code for finding in checked(source).findings] == ["GM504"]
    kept = checked(source.replace("    places[row, found]", "    self.last = places[row, found]")).findings
    assert len([finding for finding in kept if finding.declined is not None]) > 1


def test_a_loop_without_sizes_of_data_is_no_operator() -> None:
    noop(written(_PLACES + "for row, chosen in enumerate(mask):\n    places[row, 0] = 1"), select=("GM504",))


@pytest.mark.parametrize("name", ["my model (v2)", "2d.für", "a-b", ""])
def test_a_module_with_any_name_is_imported_twice_and_keeps_its_operators_apart(name: str) -> None:
    source, other = (written(_PLACES + _LOOP + f"    places[row, found] = {number}") for number in (1, 2))
    outcomes: list[Any] = []
    for text in (fixed(source)[0], fixed(source)[0], fixed(other)[0]):
        module = types.ModuleType(name)
        exec(compile(text, "subject.py", "exec"), vars(module))
        outcomes.append(torch.compile(module.Model(), backend="eager", fullgraph=True))
    given = torch.tensor([[False, True, True, True], [False] * 4])
    first, again, second = (compiled(given) for compiled in outcomes)
    assert torch.equal(first, again)
    assert first.max() == 2
    assert second.max() == 4


def test_names_of_modules_that_differ_in_dots_alone_are_no_name_of_one_operator() -> None:
    after, _ = fixed(written(_PLACES + _LOOP + "    places[row, found] = 1"))
    names = set()
    for name in ("a.b_c", "a_b.c", "a_b_c"):
        module = types.ModuleType(name)
        exec(compile(after, "subject.py", "exec"), vars(module))
        names.add(module._fill_places_operator._qualname)
    assert len(names) == 3


def test_attributes_are_read_when_the_loop_reads_them() -> None:
    source = written(_PLACES + _LOOP + "    places[row, : found.shape[0]] = found * self.step")
    source = source.replace(
        "        self.step = 2\n", "        self.reads = 0\n        if self.reads:\n            self.step = 2\n"
    )
    after, _ = fixed(source, select=("GM504",))
    assert after != source
    none = "torch.zeros(0, 4, dtype=torch.bool)"
    behaves(source, after, [none, _INPUTS[0]])  # raises where the loop has rounds, and only there
    compiles(after, [none], scenarios=[Scenario(gradients="off")], strict=False)
    overridden = (
        "class Counted(Model):\n    @property\n    def step(self):\n        self.reads += 1\n        return 1\n"
    )
    source, after = (text.replace("self.step = 2", "pass") + "\n\n" + overridden for text in (source, after))
    behaves(source, after, [none, *_INPUTS], name="Counted")
    compiles(after, [none, _INPUTS[1]], name="Counted", scenarios=[Scenario(gradients="off")], strict=False)


@pytest.mark.parametrize("annotation", ["list[torch.Tensor]", "List[torch.Tensor]"])
def test_a_list_of_tensors_is_not_taken_for_one(annotation: str) -> None:
    setup = _SETUP.replace("import torch\n", "from typing import List\n\nimport torch\n", 1).replace(
        "mask: torch.BoolTensor", f"mask: {annotation}"
    )
    loop = "places = torch.full((len(mask), 4), -1)\n" + _LOOP + "    places[row, : found.shape[0]] = found"
    declined(embedded(loop, setup), because="`mask` is a list of tensors by its annotation")


def test_an_array_of_numpy_is_not_taken_for_a_tensor() -> None:
    setup = _SETUP.replace("import torch\n", "import numpy as np\nimport torch\n", 1)
    loop = (
        "kept = np.unique(mask.cpu().numpy())\n" + _PLACES + "for each in kept:\n"
        "    found = (mask == int(each)).nonzero()\n    places[found[:, 0], found[:, 1]] = 1"
    )
    declined(embedded(loop, setup), because="`kept` is an array of NumPy", select=("GM504",))


def test_complex_tensors_may_have_gradients_and_run_the_loop() -> None:
    after, _ = fixed(
        """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, z, mask: torch.BoolTensor):
        places = torch.zeros((mask.shape[0], 4), dtype=z.dtype)
        for row, chosen in enumerate(mask):
            found = z[row][chosen]
            places[row, : found.shape[0]] = found
        return places.abs()
"""
    )
    assert "not (torch.is_grad_enabled() and z.requires_grad)" in after
    row = "torch.tensor([[True, False, True, False]])"
    for dtype in ("cfloat", "long"):
        inputs = [f"torch.arange(4).reshape(1, 4).to(torch.{dtype}), {row}"]
        compiles(after, inputs, scenarios=[Scenario(training=True, gradients="inner")], strict=False)


_FLOATS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, mask: torch.BoolTensor):
        found = torch.zeros(x.shape)
        for row, chosen in enumerate(mask):
            kept = x[row][chosen]
            found[row, : kept.shape[0]] = kept.cumsum(0) @ torch.ones(kept.shape[0], kept.shape[0])
        return self.proj(found)
"""
_FLOAT_INPUTS = [
    "torch.arange(8.0).reshape(2, 4), torch.tensor([[True, False, True, False], [True] * 4])",
    "torch.arange(8.0).reshape(2, 4).double(), torch.tensor([[True, False, True, False], [False] * 4])",
]


def test_a_loop_over_fractions_is_an_operator_where_they_take_no_gradient() -> None:
    after, _ = fixed(_FLOATS)
    assert "_fill_found(found, mask, x)" in after
    behaves(_FLOATS, after, _FLOAT_INPUTS)
    compiles(after, _FLOAT_INPUTS[:1], scenarios=[Scenario(gradients="off"), Scenario()])


def test_a_loop_over_fractions_that_take_a_gradient_keeps_it() -> None:
    after, _ = fixed(_FLOATS)
    compiles(after, _FLOAT_INPUTS[:1], scenarios=[Scenario(gradients="inner")], strict=False)


def test_a_loop_over_fractions_runs_as_before_under_autocast() -> None:
    after, _ = fixed(_FLOATS)
    space: dict[str, Any] = {}
    exec(after, space)
    model = space["Model"]()
    given = torch.randn(2, 4) * 100, torch.tensor([[True, False, True, False], [True] * 4])
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        expected = model(*given)
        compiled: Any = torch.compile(model, backend="aot_eager")
        torch.testing.assert_close(compiled(*given), expected, rtol=0, atol=0)


@pytest.mark.parametrize("chosen", ["labels == k", "(labels == k) & (x[:, 0] > 0)", "~(k != labels)"])
def test_what_is_compared_in_an_index_is_a_tensor(chosen: str) -> None:
    source = f"""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, groups: torch.Tensor):
        _, labels = torch.unique(groups, return_inverse=True)
        means = torch.zeros(3, 2)
        for k in range(3):
            rows = x[{chosen}, :]
            means[k] = rows.mean(dim=0) * rows.shape[0]
        return means
"""
    after, _ = fixed(source, select=("GM504",))
    assert "labels: torch.Tensor," in after
    inputs = ["torch.arange(6.0).view(3, 2), torch.tensor([0, 2, 2])"]
    behaves(source, after, inputs)
    compiles(after, inputs, strict=False, scenarios=[Scenario(False, "off")])


def test_a_list_where_an_annotation_says_tensor_is_traced_as_before() -> None:
    source = """
        import torch
        from torch import nn


        class Model(nn.Module):
            def forward(self, x: torch.Tensor, starts: torch.Tensor):
                parts = x.new_zeros(x.shape[0], 3)
                for i, start in enumerate(starts):
                    parts[i] = x[i, start : start + 3]
                return parts * 2
    """
    after, _ = fixed(dedent(source), select=("GM504",))
    assert "_fill_parts_operator" in after
    compiles(
        after, ["torch.randn(2, 8), torch.tensor([0, 4])", "torch.randn(2, 8), [0, 4]", "torch.randn(2, 8), (1, 2)"]
    )
