"""A select makes a new tensor: who calls a part that would have returned what it got may write into its result."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.tools.fixes import fixed, fixed_among

_HEAD = "import functools\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
_PARTS = {
    "GM101": "if y.sum() > 0:\n    y = y * 2\nreturn y",
    "GM101 in an expression": "return y * 2 if y.sum() > 0 else y",
    "GM101 under another name": "if y.sum() > 0:\n    y = y * 2\nz = y\nreturn z",
    "GM102": "if y.sum() > 0:\n    return y * 2\nreturn y",
    "GM103": "if y.isnan().any():\n    y = torch.nan_to_num(y)\nreturn y",
    "GM104": "m = y < 0\nif m.any():\n    y = y.masked_fill(m, 0.0)\nreturn y",
}
_CALLERS = {
    "written": ("self.part = Part()", "z = self.part(y)\nz += 1"),
    "written by a function": ("self.part = Part()", "z = self.part(y)\nF.relu_(z)"),
    "of a list": (
        "self.parts = nn.ModuleList([Part(), Part()])",
        "z = y\nfor part in self.parts:\n    z = part(z)\nz += 1",
    ),
    "of a list that grows": (
        "self.parts = nn.ModuleList()\nself.parts.append(Part())",
        "z = self.parts[0](y)\nz += 1",
    ),
    "in a sequence": ("self.part = nn.Sequential(Part(), nn.ReLU(inplace=True))", "z = self.part(y)"),
    "of a table": ("self.part = {'a': Part}['a']()", "z = self.part(y)\nz += 1"),
    "new": ("pass", "z = Part()(y)\nz += 1"),
    "given on": ("self.part = Part()", "f = functools.partial(self.part)\nz = f(y)\nz += 1"),
    "mapped": ("self.part = Part()", "z, = map(self.part, [y])\nz += 1"),
    "a method": ("self.part = Part()", "f = self.part.forward\nz = f(y)\nz += 1"),
    "hooked": (
        "self.part = Part()\nself.part.register_forward_hook(lambda part, given, made: made.add_(1))",
        "z = self.part(y)",
    ),
    "asked for": ("self.part = Part()", "z = self.part(y)\nz = z + 1 if z is y else z * 2"),
}


def part(body: str) -> str:
    return f"class Part(nn.Module):\n    def forward(self, y: torch.Tensor):\n{indent(body, ' ' * 8)}\n"


def model(made: str, body: str) -> str:
    init = f"    def __init__(self):\n        super().__init__()\n{indent(made, ' ' * 8)}\n\n"
    forward = f"        y = x.tanh()\n{indent(body, ' ' * 8)}\n        return y + z\n"
    return f"class Model(nn.Module):\n{init}    def forward(self, x: torch.Tensor):\n{forward}"


def fixed_apart(root: Path, text: str, caller: str) -> str:
    """The part after a fix, in a file of its own beside the one that calls it."""
    return fixed_among(root, f"{_HEAD}\n\n{text}", {"other.py": f"{_HEAD}from model import Part\n\n\n{caller}"})[0]


@pytest.mark.parametrize("caller", _CALLERS)
def test_a_part_whose_result_another_file_writes_is_left_alone(tmp_path: Path, caller: str) -> None:
    text = part(_PARTS["GM101"])
    assert fixed_apart(tmp_path, text, model(*_CALLERS[caller])) == f"{_HEAD}\n\n{text}"


@pytest.mark.parametrize("body", _PARTS)
def test_each_rule_asks_who_writes(tmp_path: Path, body: str) -> None:
    text = part(_PARTS[body])
    assert fixed_apart(tmp_path, text, model(*_CALLERS["written"])) == f"{_HEAD}\n\n{text}"
    assert "is_compiling" in fixed_apart(tmp_path, text, model("self.part = Part()", "z = self.part(y)"))


@pytest.mark.parametrize("body", _PARTS)
def test_the_same_in_one_file(body: str) -> None:
    text = f"{_HEAD}\n\n{part(_PARTS[body])}\n\n"
    for name in ("written", "written by a function", "in a sequence", "asked for"):
        source = text + model(*_CALLERS[name])
        assert fixed(source)[0] == source, name
    assert "is_compiling" in fixed(text + model("self.part = Part()", "z = self.part(y)"))[0]


def test_a_function_of_another_file_is_asked_for_as_well(tmp_path: Path) -> None:
    text = f"{_HEAD}\n\ndef scaled(y: torch.Tensor):\n{indent(_PARTS['GM101'], '    ')}\n"
    for body, is_fixed in {
        "z = scaled(y)\nz += 1": False,
        "f = scaled\nz = f(y)\nz += 1": False,
        "z = scaled(y)": True,
        "z = y * scaled(y)\nz += 1": True,
    }.items():
        other = f"{_HEAD}from model import scaled\n\n\n{model('pass', body)}"
        assert ("is_compiling" in fixed_among(tmp_path, text, {"other.py": other})[0]) is is_fixed, body


def test_heirs_of_what_holds_a_part_call_it_too(tmp_path: Path) -> None:
    text = part(_PARTS["GM101"])
    base = f"{_HEAD}from model import Part\n\n\n{model('self.part = Part()', 'z = self.part(y)')}"
    heir = """
        import torch
        from base import Model

        class Heir(Model):
            def forward(self, x: torch.Tensor):
                y = x.tanh()
                z = self.part(y)
                z += 1
                return y + z
    """
    files = {"base.py": base, "heir.py": dedent(heir)}
    assert fixed_among(tmp_path, f"{_HEAD}\n\n{text}", files)[0] == f"{_HEAD}\n\n{text}"


@pytest.mark.parametrize(
    ("made", "called"),
    [
        ("nn.Sequential(Same(), nn.ReLU(inplace=True))", "self.part(z)"),
        ("nn.ModuleDict({'a': Same(), 'b': nn.ReLU(True)})", "self.part['b'](z)"),
        ("nn.ModuleList([Same(), nn.ReLU(True)])", "[part(z) for part in self.part]"),
    ],
)
def test_layers_beside_one_of_the_file_may_work_in_place(made: str, called: str) -> None:
    same = "class Same(nn.Module):\n    def forward(self, y):\n        return y * 1\n"
    body = f"z = y\nif x.sum() > 0:\n    z = z * 2\n{called}"
    source = f"{_HEAD}\n\n{same}\n\n{model(f'self.part = {made}', body)}"
    assert fixed(source)[0] == source


@pytest.mark.parametrize(
    "body",
    [
        "late = (y.mul_(k) for k in (2, 3))\nz = y\nif x.sum() > 0:\n    z = z * 2\nnext(late)",
        "z = y\nwith self.after(y):\n    if x.sum() > 0:\n        z = z * 2",
    ],
)
def test_generators_and_the_ends_of_with_statements_write_later(body: str) -> None:
    after = "\n    @contextlib.contextmanager\n    def after(self, t):\n        yield\n        t.mul_(2)\n"
    source = f"import contextlib\n{_HEAD}\n\n{model('pass', body)}{after}"
    assert fixed(source)[0] == source


@pytest.mark.parametrize(
    "body",
    [
        "z = self.count\nif x.sum() > 0:\n    z = z * 2\nbump(self)",
        "y = y * self.count\nif y.isnan().any():\n    raise ValueError('nan')\nbump(self)\nz = y",
    ],
)
def test_a_function_that_gets_the_instance_writes_its_tensors(tmp_path: Path, body: str) -> None:
    bump = "def bump(module):\n    module.count.add_(1)\n"
    text = model("self.register_buffer('count', torch.ones(2, 3))", body)
    for source, others in {
        f"{_HEAD}from other import bump\n\n\n{text}": {"other.py": bump},
        f"{_HEAD}\n\n{bump}\n\n{text}": {},
    }.items():
        after = fixed_among(tmp_path, source, others)[0]
        # A check joins two graphs: without gradients nothing needs what was written.
        assert after == source or "not torch.is_grad_enabled()" in after


_LED = """
import functools

import torch
from torch import nn
from other import Holder, Unknown, bump, holding


class keeper:
    def __init__(self, model):
        self.model = model


class writer:
    def __init__(self, model):
        model.count.add_(1)


class Plain:
    model: nn.Module


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.ones(2, 3))
        self.holder = Holder(self)
        self.listed = [self]
        self.made = functools.partial(bump, self)
        self.ways = {"up": self.up}

    def up(self):
        self.count.add_(1)

    def look(self):
        return self.count.sum()

    def forward(self, x: torch.Tensor):
        z = self.count
        if x.sum() > 0:
            z = z * 2
        CALL
        return x * z
"""


@pytest.mark.parametrize(
    ("call", "writes"),
    [
        ("functools.partial(bump, self)()", True),
        ("later = functools.partial(bump, self); later()", True),
        ("for each in [self]: bump(each)", True),
        ("me = self; bump(me)", True),
        ("me = self; me.count.add_(1)", True),
        ("bump(self.listed[0])", True),
        ("self.holder.run()", True),
        ("held = holding(self); held.run()", True),
        ("held = keeper(self); held.run()", True),
        ("keeper(self)", False),
        ("Plain(self)", False),
        ("writer(self)", True),
        ("Unknown(self)", True),
        ("self.holder()", True),
        ("self.made()", True),
        ("self.ways['up']()", True),
        ("getattr(self, 'up')()", True),
        ("list(map(bump, [self]))", True),
        ("type(self).up(self)", True),
        ("Model.up(self)", True),
        ("me = self; me.look()", False),
        ("print(self)", False),
        ("getattr(self, 'look')()", False),
        ("Model.look(self)", False),
        ("x = x * len(self.listed)", False),
    ],
)
def test_the_instance_reaches_functions_by_other_ways(tmp_path: Path, call: str, writes: bool) -> None:
    source = _LED.replace("CALL", call)
    after = fixed_among(tmp_path, source, {"other.py": "def bump(model):\n    model.count.add_(1)\n"})[0]
    assert ("torch.where" in after) is not writes


_WRITES = """
from torch import nn

from model import Part


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        y = self.part(x)
        y.add_(1)
        return x + y
"""


def test_nobody_else_has_what_a_part_is_given_new(tmp_path: Path) -> None:
    part = (
        "    def clamped(self, x):\n        if x.isinf().any():\n            x = x.clamp(-9, 9)\n        return x\n\n"
    )
    for number, given in enumerate(("x * 2.0", "x")):
        (tmp_path / str(number)).mkdir()
        source = f"import torch\nfrom torch import nn\n\n\nclass Part(nn.Module):\n{part}"
        source += f"    def forward(self, x: torch.Tensor):\n        return self.clamped({given})\n"
        after, told = fixed_among(tmp_path / str(number), source, {"outer.py": _WRITES})
        assert ("is_compiling" in after) is (number == 0), told
