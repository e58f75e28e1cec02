"""`if mask.any():` around work on the rows of the mask (GM510): what eager mode skips where no row is chosen."""

from pathlib import Path

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed, fixed_among
from tests.tools.observe import Scenario

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


def bins(x, w, low, high, inverse=False):
    if torch.min(x) < low or torch.max(x) > high:
        raise ValueError("outside")
    count = w.shape[-1]
    if count * 0.1 > 1.0:
        raise ValueError("too many")
    edges = F.pad(torch.cumsum(F.softmax(w, dim=-1), dim=-1), pad=(1, 0))
    edges = (high - low) * edges + low
    edges[..., 0] = low
    edges[..., -1] = high + 1e-3
    at = (torch.sum(x[..., None] >= edges, dim=-1) - 1)[..., None]
    width = (edges[..., 1:] - edges[..., :-1]).gather(-1, at)[..., 0]
    y = (x - edges.gather(-1, at)[..., 0]) / width
    if inverse:
        assert (y * y >= 0).all()
        return y.sqrt(), y
    return y * (1 - y), torch.log(width)


class Model(nn.Module):
    def __init__(self, low=-1.5, high=1.5, inverse=False):
        super().__init__()
        self.low, self.high, self.inverse = low, high, inverse

    def forward(self, x: torch.Tensor, w: torch.Tensor):
        low, high, inverse = self.low, self.high, self.inverse
        y, z = x.clone(), torch.zeros_like(x)
        mask = (x >= low) & (x <= high)
        if torch.any(mask):
            y[mask], z[mask] = bins(x[mask], w[mask, :], low, high, inverse=inverse)
        return y, z
"""
_SOME = "torch.tensor([[0.5, float('nan'), -1.0], [9.0, 1.5, -9.0]]), torch.linspace(-2, 3, 24).reshape(2, 3, 4)"
_NONE = "torch.tensor([9.0, -7.0]), torch.ones(2, 4)"
_EMPTY = "torch.empty(0), torch.empty(0, 4)"
_TRAINED = [Scenario(), Scenario(gradients="leaves")]


def _reasons(source: str) -> list[str]:
    return [each.declined or "" for each in checked(source, select=("GM510",)).findings]


def _calls(name: str, body: str) -> str:
    """A branch that calls a function of this name with the rows."""
    lines = "".join(f"\n    {line}" for line in body.splitlines())
    return _small(f"y[m] = {name}(x[m])", top=f"def {name}(x):{lines}")


def _small(branch: str, before: str = "", top: str = "", test: str = "m.any()", rest: str = "") -> str:
    lines = [*before.splitlines(), f"if {test}:", *(f"    {line}" for line in branch.splitlines()), *rest.splitlines()]
    body = "\n        ".join(lines)
    return f"""
import torch
from torch import nn


def twice(x):
    return x * 2


{top}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def count(self):
        self.calls += 1
        return 2.0

    def forward(self, x: torch.Tensor, m: torch.Tensor):
        y = torch.zeros_like(x)
        {body}
        return y
"""


def test_the_test_is_left_out_and_checks_hold_where_no_row_is_chosen() -> None:
    after, _ = fixed(_MODEL, select=("GM510",))
    assert "elif torch.any(mask):" in after
    for asked in ("and 0 >= low\n", "and 0 <= high\n", "and not w.shape[-1] * 0.1 > 1.0\n", "and not inverse\n"):
        assert asked in after
    assert fixed(after, select=("GM510",))[0] == after
    whole, _ = fixed(_MODEL)
    behaves(_MODEL, whole, [_SOME, _NONE, _EMPTY])
    compiles(whole, [_SOME, _NONE], scenarios=[Scenario()])
    compiles(whole, [_SOME], scenarios=_TRAINED)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("low=-1.5", "low=1.0"),
        ("high=1.5", "high=-1.0"),
        ("low=-1.5, high=1.5", "low=0.25, high=0.5"),
        ("inverse=False):\n        super", "inverse=True):\n        super"),
    ],
)
def test_where_zeros_would_not_do_the_test_of_the_author_runs(old: str, new: str) -> None:
    assert old in _MODEL
    source = _MODEL.replace(old, new)
    compiles(fixed(source)[0], [_NONE, "torch.tensor([0.3, 9.0, 0.4]), torch.ones(3, 4)"], strict=False)


def test_a_check_of_sizes_that_eager_mode_skips_does_not_raise() -> None:
    wide = "torch.tensor([9.0, -7.0]), torch.ones(2, 14)"
    compiles(fixed(_MODEL)[0], [wide], strict=False)


def test_a_check_that_fails_still_raises() -> None:
    source = _MODEL.replace("(x >= low) & (x <= high)", "(x >= low) & (x <= 100.0)")
    after, _ = fixed(source)
    assert "elif torch.any(mask):" in after
    compiles(after, [_NONE.replace("-7.0", "0.5"), _SOME], strict=False)


@pytest.mark.parametrize(
    ("source", "because"),
    [
        (_small("y[m] = twice(x[m])\nself.calls += 1"), "does something where no row is selected"),
        (_small("y[m] = twice(x[m])\nself.last = x"), "does something where no row is selected"),
        (_small("y[m] = twice(x[m])\nprint('some')"), "does something where no row is selected"),
        (_small("y[m] = twice(x[m])\nx[0] = 1.0"), "does something where no row is selected"),
        (_small("y[m] = twice(x[m])\nassert x.sum() > 0"), "does something where no row is selected"),
        (_small("y[m] = twice(x[m])\nk = 2", before="k = 1", rest="y = y * k"), "does something where no row"),
        (_small("y[m] = twice(x[m])\nreturn x"), "does something where no row is selected"),
        (_small("y[m] = twice(x[m]) * self.count()"), "`self.count()` may have side effects"),
        (_small("k = self.count()\ny[m] = twice(x[m]) * k"), "`self.count()` may have side effects"),
        (_small("k = [self.count()]\ny[m] = twice(x[m])"), "`self.count()` may have side effects"),
        (_small("y[m] = twice(x[m]) * (k := 2)"), "may have side effects"),
        (
            _calls("shifted", "torch.rand(1)\nreturn x"),
            "may have side effects",
        ),
        (
            _calls("shifted", "k = torch.rand(1)\nreturn x"),
            "may have side effects",
        ),
        (_calls("shifted", "print(1)\nreturn x"), "may have side effects"),
        (_calls("shifted", "k = input()\nreturn x"), "may have side effects"),
        (
            _calls("sure", "assert (x * 2).min() > 0\nreturn x"),
            "may raise where no row",
        ),
        (
            _calls("sure", "assert x.min() > 0\nreturn x"),
            "may raise where no row",
        ),
        (
            _calls("sure", "if x.min() <= 0:\n    raise ValueError\nreturn x"),
            "may raise",
        ),
        (
            _calls("sure", "k = x.min()\nassert (x > -1).all()\nreturn x"),
            "may raise where no row",
        ),
        (
            _calls("sure", "raise ValueError(x)"),
            "may be reached where eager mode skips it",
        ),
        (
            _small(
                "y[m] = taken(x[m], x[m])",
                top="def taken(x, i):\n    return x[:, None].gather(-1, i[:, None])",
            ),
            "out of range",
        ),
        (_small("y[m] = (x[m] + 1) % (x[m] + 2)"), "may divide integers by zero"),
        (_small("y[m] = x[m] // 2.0"), "has no derivative"),
        (_small("y[m] = torch.floor_divide(x[m], x[m] + 1)"), "has no derivative"),
        (_small("y[m] = torch.remainder(x[m] + 1, x[m] + 2)"), "may divide integers by zero"),
    ],
)
def test_what_eager_mode_would_notice_is_declined(source: str, because: str) -> None:
    first, *_ = _reasons(source)
    assert because in first


@pytest.mark.parametrize(
    ("branch", "test"),
    [
        ("y[m] = twice(x[m])", "m.sum() > 0"),
        ("y[m] += twice(x[m])", "torch.any(m)"),
        ("low = x[m].clamp(max=1.0)\ny[m] = low * x[m]", "m.any().item()"),
        ("y[m] = twice(x[m])\ny[m] *= 2\nm2 = 3", "self.calls == 0 and m.any()"),
        ("y[~m] = x[~m] % (x[~m] * 1.0)", "not m.all()"),
        ("if self.calls:\n    y[m] = x[m] + 1\nelse:\n    y[m] = x[m] - 1", "m.any()"),
    ],
)
def test_spellings_of_tests(branch: str, test: str) -> None:
    source = _small(branch, test=test)
    after, _ = fixed(source)
    assert f"elif {test}:" in after
    inputs = [
        "torch.tensor([4.0, -1.0, 0.0, float('nan')]), torch.tensor([True, False, True, False])",
        "torch.tensor([4.0, -1.0]), torch.tensor([False, False])",
        "torch.tensor([4.0, -1.0]), torch.tensor([True, True])",
        "torch.tensor([[4.0, -1.0]]), torch.tensor([[True, False]])",
    ]
    behaves(source, after, inputs)
    compiles(after, inputs, scenarios=[Scenario()])
    compiles(after, inputs[::3], scenarios=_TRAINED)


def test_integers_are_not_divided_by_the_zeros_that_stand_in() -> None:
    source = _small("y[m] = x[m] % x[m]")
    after, _ = fixed(source)
    assert "x.is_floating_point()" in after
    compiles(after, ["torch.tensor([4, 2]), torch.tensor([False, False])"], strict=False)
    plain = source.replace("        if m.any():\n            y[m]", "        y[m]")
    compiles(fixed(plain)[0], ["torch.tensor([4, 2]), torch.tensor([False, False])"], strict=False)


def test_a_branch_with_another_way_is_left_alone() -> None:
    after, _ = fixed(_small("y[m] = twice(x[m])", rest="else:\n    y = x"), select=("GM510",))
    assert "elif m.any()" not in after


def test_functions_of_other_files_are_followed_where_nothing_replaces_them(tmp_path: Path) -> None:
    source = _MODEL.replace("at = (torch.sum(x[..., None] >= edges, dim=-1) - 1)[..., None]", "at = place.of(x, edges)")
    source = source.replace("import torch\n", "import place\nimport torch\n", 1)
    plain = (
        "import torch\n\n\ndef of(x, edges):\n    return (torch.sum(x[..., None] >= edges, dim=-1) - 1)[..., None]\n"
    )
    for number, (text, other, taken) in enumerate(
        [
            (plain, "", True),
            (plain, "import place\nplace.of = None\n", False),
            (plain + "\n\nif True:\n    def of(x, edges):\n        return edges\n", "", False),
            (plain + "\n\ntry:\n    from fast import of\nexcept ImportError:\n    pass\n", "", False),
            (plain.replace("def of", "@torch.no_grad()\ndef of"), "", False),
            (plain.replace("dim=-1", "dim=0"), "", False),
            (plain.replace("    return", "    print(1)\n    return"), "", False),
        ]
    ):
        root = tmp_path / str(number)
        root.mkdir()
        after, _ = fixed_among(root, source, {"place.py": text, "other.py": other}, select=("GM510",))
        assert ("elif torch.any(mask)" in after) is taken, (text, other)


def test_bounds_that_are_written_out_are_not_asked() -> None:
    top = "def above(x, low):\n    if x.min() < low:\n        raise ValueError\n    return x - low"
    assert "0 >= " not in fixed(_small("y[m] = above(x[m], -1.5)", top=top))[0]
    assert "may raise where no row is selected" in _reasons(_small("y[m] = above(x[m], 0.5)", top=top))[0]
    counted = "def few(x, n):\n    if n * 2 > 4:\n        raise ValueError\n    return x * n"
    assert "elif m.any()" in fixed(_small("y[m] = few(x[m], 2)", top=counted))[0]
    assert "may be reached" in _reasons(_small("y[m] = few(x[m], 3)", top=counted))[0]


@pytest.mark.parametrize(("default", "taken"), [("-1.5", True), ("LOW", True), ("0.5", False), ("HIGH", False)])
def test_defaults_are_what_they_were_when_the_function_was_made(default: str, taken: bool) -> None:
    above = f"def above(x, low={default}):\n    if x.min() < low:\n        raise ValueError\n    return x"
    top = f"LOW = 0.0\nHIGH = 2\n\n\n{above}"
    assert ("elif m.any()" in fixed(_small("y[m] = above(x[m])", top=top))[0]) is taken
    top = f"LOW = 0.0\nHIGH = 2\nif torch:\n    LOW = 9\n\n\n{above}"
    taken = taken and default != "LOW"
    assert ("elif m.any()" in fixed(_small("y[m] = above(x[m])", top=top))[0]) is taken


def test_known_integers_are_declined_where_zeros_would_not_do() -> None:
    first, *_ = _reasons(_small("k[m] = h[m] % h[m]", before="h = x.long()\nk = h * 0", rest="y = y + k"))
    assert "`h` holds integers" in first


@pytest.mark.parametrize("joined", ["torch.min(x, x * 2)", "torch.cat([x[:, None], x[:, None]], dim=-1).amax(-1)"])
def test_what_several_tensors_of_rows_give_stays_apart(joined: str) -> None:
    source = _small("y[m] = both(x[m])", top=f"def both(x):\n    return {joined}")
    after, _ = fixed(source)
    assert "elif m.any()" in after
    compiles(after, ["torch.tensor([4.0, -1.0]), torch.tensor([True, False])"], scenarios=_TRAINED)
    for other in ("torch.cat([x, x])", "torch.cat([x[:, None], x[:, None]], dim=0)", "torch.stack([x, x])"):
        assert "elif m.any()" not in fixed(source.replace(joined, other))[0]


def test_an_annotated_assignment_is_one() -> None:
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        y = x * 2
        if x.sum() > 0:
            y: torch.Tensor = x * 3
        return y
"""
    after, _ = fixed(source)
    assert "torch.where" in after
    compiles(after, ["torch.ones(2)", "-torch.ones(2)"])


@pytest.mark.parametrize("bound", ["twice = x.new_tensor", "twice = torch.sort", "twice = None"])
def test_a_name_that_a_function_binds_is_not_the_function_of_the_module(bound: str) -> None:
    top = f"def other(x):\n    {bound}\n    return twice(x)"
    source = _small("y[m] = other(x[m])", top=top)
    assert "elif m.any()" not in fixed(source)[0]
    assert "elif m.any()" in fixed(source.replace(bound, "pass"))[0]


def test_a_compile_path_that_stands_in_a_function_is_followed() -> None:
    once, _ = fixed(_MODEL, select=("GM301",))
    assert "torch._assert_async" in once
    after, _ = fixed(once, select=("GM510",))
    assert "and 0 >= low\n" in after


@pytest.mark.parametrize("reduced", ["x[mask].mean()", "x[mask].sum()", "F.mse_loss(x[mask], y[mask])"])
def test_what_is_reduced_to_one_number_keeps_the_test(reduced: str) -> None:
    rows = "y[mask], z[mask] = bins(x[mask], w[mask, :], low, high, inverse=inverse)"
    assert rows in _MODEL
    reasons = _reasons(_MODEL.replace(rows, f"apart = {reduced}\n            y[mask] = x[mask] * 2"))
    assert any("is not a number where no row is selected" in each for each in reasons), reasons
