"""Parts of a module that a method calls inside of `try`, in ways of its own, count as called there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import fixed_among

_HOLDS = """
import functools

import torch
from torch import nn


class Part(nn.Module):
    def forward(self, x: torch.Tensor):
        if (x < 0).any():
            raise ValueError("negative")
        return x.sqrt()


def make():
    return Part()


KINDS = {{"part": Part}}


def fill(model):
    model.part = Part()


class Model(nn.Module):
    @property
    def now(self):
        return self.part

    def __init__(self):
        super().__init__()
        {held}

    def forward(self, x: torch.Tensor):
        try:
            return {called}
        except ValueError:
            return x * 0
"""


@pytest.mark.parametrize(
    ("held", "called"),
    [
        ("self.part = Part()\n        self.kept = self.part.forward", "self.kept(x)"),
        ("self.part = Part()\n        self.kept = [self.part]", "self.kept[0](x)"),
        ("self.part = Part()\n        self.kept = functools.partial(self.part)", "self.kept(x)"),
        ("self.part = Part()\n        self.kept = lambda x: self.part(x)", "self.kept(x)"),
        ("self.part = Part()\n        self.all = nn.Sequential(self.part, nn.ReLU())", "self.all(x)"),
        ("self.all = nn.ModuleDict({'part': Part()})", "self.all['part'](x)"),
        ("self.part = make()", "self.part(x)"),
        ("self.part = Part()", "torch.utils.checkpoint.checkpoint(self.part, x, use_reentrant=False)"),
        ("self.part = Part()", "list(map(self.part, [x]))[0]"),
        ("self.part = Part()", "list(self.children())[0](x)"),
        ("setattr(self, 'part', Part())", "self.part(x)"),
        ("for i in range(2):\n            setattr(self, f'part{i}', Part())", "getattr(self, 'part1')(x)"),
        ("self.add_module('part', Part())", "self.part(x)"),
        ("self.part = Part()", "self._modules['part'](x)"),
        ("layers = [Part(), nn.Identity()]\n        self.all = nn.Sequential(*layers)", "self.all(x)"),
        ("self.all = nn.ModuleList()\n        self.all.append(Part())", "self.all[0](x)"),
        ("self.part = dict(part=Part)['part']()", "self.part(x)"),
        ("self.part = KINDS['part']()", "self.part(x)"),
        ("fill(self)", "self.part(x)"),
        ("self.part = Part()", "self.now(x)"),
        ("self.part = Part()", "list(map(self.now, [x]))[0]"),
        ("self.part = Part()", "(lambda part: part(x))(self.now)"),
        ("self.part = Part()", "[part(x) for part in [self.now]][0]"),
    ],
)
def test_a_part_that_a_method_calls_in_a_way_of_its_own_counts(tmp_path: Path, held: str, called: str) -> None:
    source = _HOLDS.format(held=held, called=called)
    compiles(source, ["torch.tensor([-1.0, 2.0])"], strict=False)
    after, told = fixed_among(tmp_path, source, {})
    assert after == source
    assert any("caught" in each or "`except ValueError` in Model.forward" in each for each in told), told


_READS = """
    @property
    def ready(self):
        try:
            return self.now
        except ValueError:
            return None
"""


def test_a_part_whose_owner_is_only_read_there_does_not_count(tmp_path: Path) -> None:
    source = _HOLDS.format(held="self.part = Part()", called="self.part(x)")
    source = source.replace("try:", "if self.ready is not None:")
    source = source.replace("        except ValueError:\n            return x * 0\n", f"        return x\n{_READS}")
    compiles(source, ["torch.tensor([-1.0, 2.0])"], strict=False)
    assert "torch._assert_async" in fixed_among(tmp_path, source, {})[0]


def test_a_part_of_another_class_does_not_count(tmp_path: Path) -> None:
    other = "class Other(nn.Module):\n    def forward(self, x):\n        try:\n            return self.show(x)\n"
    other += "        except ValueError:\n            return x\n\n    def show(self, x):\n        return x\n"
    source = _HOLDS.format(held="self.part = Part()", called="self.part(x)").replace("try:", "if True:")
    source = source.replace("        except ValueError:\n            return x * 0\n", f"\n\n{other}")
    assert "torch._assert_async" in fixed_among(tmp_path, source, {})[0]


def test_parts_of_parts_count_and_what_a_function_is_given_that_catches(tmp_path: Path) -> None:
    block = "class Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    block += "        self.parts = nn.ModuleDict({'part': Part()})\n\n"
    block += "    def forward(self, x):\n        return self.parts['part'](x)\n\n\n"
    deep = _HOLDS.format(held="self.block = Block()", called="self.block(x)")
    deep = deep.replace("class Model(", f"{block}class Model(")
    safe = "def safe(function, x):\n    try:\n        return function(x)\n"
    safe += "    except ValueError:\n        return x * 0\n\n\n"
    given = _HOLDS.format(held="self.part = Part()\n        self.kept = self.part", called="safe(self.kept, x)")
    given = given.replace("try:", "if True:").replace("        except ValueError:\n            return x * 0\n", "")
    for number, source in enumerate([deep, given.replace("class Model(", f"{safe}class Model(")]):
        (tmp_path / str(number)).mkdir()
        after, told = fixed_among(tmp_path / str(number), source, {})
        assert after == source
        assert any("caught" in each for each in told)


_LONG = {
    "numbers": "{\n            'first': 1.0,\n            'second': 'sum',\n        }",
    "a library": "nn.ModuleList(\n            [nn.Linear(2, 2) for _ in range(2)]\n        )",
    "the part": "nn.ModuleList(\n            [Part() for _ in range(2)]\n        )",
    "a function": "nn.ModuleList(\n            [make() for _ in range(2)]\n        )",
    "a table": "nn.ModuleList(\n            [KINDS['part']() for _ in range(2)]\n        )",
    "a local name": "nn.ModuleList(\n            [kind() for _ in range(2)]\n        )",
}


@pytest.mark.parametrize("held", _LONG)
def test_a_long_assignment_holds_what_it_names(tmp_path: Path, held: str) -> None:
    kind = "kind = Part\n        " if held == "a local name" else ""
    source = _HOLDS.format(held=f"{kind}self.all = {_LONG[held]}", called="self.all[0](x)")
    after, _ = fixed_among(tmp_path, source, {})
    assert (after == source) is (held not in {"numbers", "a library"})


def test_an_argument_annotated_as_text_is_no_part(tmp_path: Path) -> None:
    for number, annotation in enumerate(("", ": str")):
        (tmp_path / str(number)).mkdir()
        body = "try:\n            return self.kept(x)\n        except ValueError:\n            return x"
        made = "def make():\n    part = model.Part()\n    return Outer(part)"
        other = _GIVEN.format(body=body, made=made).replace("part):", f"part{annotation}):")
        after, told = fixed_among(tmp_path / str(number), _HOLDS.partition("def make()")[0], {"outer.py": other})
        assert ("torch._assert_async" in after) is bool(number), told


_GIVEN = """
import torch
from torch import nn

import model


class Outer(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.kept = part

    def forward(self, x):
        {body}


{made}
"""


@pytest.mark.parametrize(
    "made",
    [
        "def make():\n    return Outer(model.Part())",
        "class Whole(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        part = model.Part()\n        self.outer = Outer(part)\n\n"
        "    def forward(self, x):\n        return self.outer(x)",
    ],
)
def test_a_part_that_another_file_gives_to_what_catches_counts(tmp_path: Path, made: str) -> None:
    source = _HOLDS.partition("def make()")[0]
    for number, body in enumerate(
        ("try:\n            return self.kept(x)\n        except ValueError:\n", "if True:\n")
    ):
        (tmp_path / str(number)).mkdir()
        rest = "            return x" if number == 0 else "            return self.kept(x)"
        other = _GIVEN.format(body=f"{body}{rest}", made=made)
        after, told = fixed_among(tmp_path / str(number), source, {"outer.py": other})
        assert ("torch._assert_async" in after) is bool(number), told


@pytest.mark.parametrize(
    ("handled", "imported", "counts"),
    [
        ("NotImplementedError", "", False),
        ("(NotImplementedError, Missing)", "from builtins import NotImplementedError as Missing", False),
        ("NotImplementedError", "from errors import NotImplementedError", False),
        ("NotImplementedError", "from errors import Alias as NotImplementedError", True),
        ("(NotImplementedError, RuntimeError)", "", True),
    ],
)
def test_a_handler_for_methods_that_are_not_implemented_concerns_no_parts(
    tmp_path: Path, handled: str, imported: str, counts: bool
) -> None:
    held = "self.part = Part()\n        self.kept = lambda x: self.part(x)"
    source = _HOLDS.format(held=held, called="self.kept(x)").replace("except ValueError", f"except {handled}")
    others = {"errors.py": "class NotImplementedError(ValueError):\n    pass\n\n\nAlias = ValueError\n"}
    after, _ = fixed_among(tmp_path, f"{imported}\n{source}", others)
    assert (after == f"{imported}\n{source}") is counts


_CALLS = """
import torch
from torch import nn

import model


class Plain(nn.Module):
    def forward(self, x):
        return x


class Keeps:
    def __init__(self, *parts):
        self.kept = parts

    def add(self, part):
        self.kept += (part,)

    def __call__(self, x):
        try:
            return self.kept[0](x)
        except ValueError:
            return x


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.keeps = Keeps(Plain())

    def forward(self, x):
        return self.keeps(x)


def put(part, others):
    others.append(part)


{made}
"""
_GIVEN_AWAY = [
    "Keeps(model.Part())",
    "part = model.Part()\nreturn Keeps(part)",
    "parts = []\nparts.append(model.Part())\nKeeps(*parts)",
    "parts = []\nput(model.Part(), parts)\nKeeps(parts)",
    "table = {}\ntable['part'] = model.Part()\nKeeps(table['part'])",
    "keeps = Keeps()\nkeeps.add(model.Part())",
    "with Keeps() as keeps:\n    keeps.add(model.Part())",
    "part, other = model.Part(), 1\nKeeps(part)",
    "for part in [model.Part()]:\n    Keeps(part)",
    "if (part := model.Part()) is not None:\n    Keeps(part)",
    "def inner():\n    return model.Part()\nKeeps(inner())",
    "part = nn.Sequential(model.Part())\nKeeps(part[0])",
    "Keeps(*[part for part in (model.Part(),)])",
    "Keeps(lambda x: model.Part()(x))",
]
_KEPT = ["Keeps(1)\nmodel.Part()", "part = model.Part()\nother = Plain()\nfor _ in Keeps(range(3)):\n    part(other)"]


@pytest.mark.parametrize("body", [*_GIVEN_AWAY, *_KEPT])
def test_what_a_function_gives_to_what_keeps_and_calls_it_counts(tmp_path: Path, body: str) -> None:
    source = _HOLDS.partition("def make()")[0]
    lines = "\n    ".join(body.splitlines())
    after, told = fixed_among(tmp_path, source, {"outer.py": _CALLS.format(made=f"def make():\n    {lines}")})
    assert ("torch._assert_async" in after) is (body in _KEPT), told


@pytest.mark.parametrize(("given", "counts"), [("self.part", True), ("self", True), ("self.size", False)])
def test_an_attribute_that_is_given_away_counts(tmp_path: Path, given: str, counts: bool) -> None:
    source = _HOLDS.partition("def make()")[0]
    made = (
        "class Maker:\n    def make(self):\n        self.part = model.Part()\n        self.size = 3\n"
        f"        self.run(self.size)\n        Keeps({given})"
    )
    after, told = fixed_among(tmp_path, source, {"outer.py": _CALLS.format(made=made)})
    assert ("torch._assert_async" in after) is not counts, told


def test_writing_to_a_stream_runs_no_part(tmp_path: Path) -> None:
    source = _HOLDS.partition("def make()")[0]
    for number, called in enumerate(("self.kept.write(str(x))", "self.kept.run(x)")):
        (tmp_path / str(number)).mkdir()
        body = f"try:\n            {called}\n        except ValueError:\n            pass\n        return x"
        made = "def make():\n    return Outer(model.Part())"
        other = _GIVEN.format(body=body, made=made)
        after, told = fixed_among(tmp_path / str(number), source, {"outer.py": other})
        assert ("torch._assert_async" in after) is (number == 0), told
