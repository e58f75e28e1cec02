"""Factories, pins and eager runs, without a child process: what is refused, and which differences are seen."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from graphmend_evaluation.counting import Call
from graphmend_evaluation.loading import Factory, Model, load_factory
from graphmend_evaluation.runs import (
    Observed,
    _memory,
    compiled_difference,
    eager_differences,
    eager_run,
    load,
    observe,
    save,
)
from graphmend_evaluation.worktree import LoadError, add_to_path

MODEL = """
    import logging
    import random
    import warnings

    import torch


    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.register_buffer("seen", torch.zeros(()))
            self.last = None

        def forward(self, x):
            self.seen += 1
            self.last = x.shape
            logging.getLogger("scale").warning("scaling")
            warnings.warn("twice", stacklevel=1)
            print("scaled", 2)
            y = self.linear(x)
            if x.shape[0] > 2:
                raise ValueError("too many")
            return y * 2, x


    def scale():
        return Scale(), [(torch.rand(2, 4),), (torch.rand(2, 4),), (torch.rand(3, 4),)]


    def learning():
        return Scale(), (torch.rand(2, 4),), {"train": True, "gradients": True}
"""


OUTPUT = """
    import dataclasses


    @dataclasses.dataclass
    class Output:
        y: torch.Tensor
        x: torch.Tensor


"""


@pytest.fixture
def worktree(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes a worktree whose module `measured` has the given source, and forgets it all after the test."""
    path, modules = list(sys.path), set(sys.modules)
    number = 0

    def make(source: str) -> Path:
        nonlocal number
        number += 1
        root = tmp_path / str(number)
        root.mkdir()
        (root / "measured.py").write_text(textwrap.dedent(source))
        sys.modules.pop("measured", None)
        add_to_path(root, "measured:factory")
        return root

    yield make
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name == "measured" or name.startswith("installed"):
            del sys.modules[name]


def factory(root: Path, name: str) -> Factory:
    return load_factory(root, f"measured:{name}")


def observed(root: Path, name: str, folder: Path, pins: Path | None = None) -> list[Observed]:
    folder.mkdir()
    eager_run(factory(root, name), folder, pins)
    return load(folder / "eager.pt")


def changes(worktree: Callable[[str], Path], folder: Path, old: str, new: str, name: str = "scale") -> str:
    """What differs, line by line, when `old` becomes `new` in the model."""
    assert old in MODEL
    before = observed(worktree(MODEL), name, folder / "before")
    after = observed(worktree(MODEL.replace(old, new)), name, folder / "after", folder / "before")
    return "\n".join(eager_differences(before, after))


def test_same_code_is_identical_though_other_random_numbers_were_drawn(
    worktree: Callable[[str], Path], tmp_path: Path
) -> None:
    assert changes(worktree, tmp_path, "return Scale(), [", "torch.rand(9)\n        return Scale(), [") == ""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("return y * 2, x", "return y * 2.0000002, x", "call 1, [0]: "),
        ("return y * 2, x", "return y * 2, x.clone()", "shares memory with input[0][0]"),
        ("return y * 2, x", "return [y * 2, x]", "tuple of 2 became list of 2"),
        ("self.seen += 1", "self.seen += 2", "call 1, other state after it: seen"),
        ("self.last = x.shape", "self.last = None", "call 1, other state after it: last"),
        ("y = self.linear(x)", "y = self.linear(x); torch.rand(1)", "torch random numbers"),
        ("y = self.linear(x)", "y = self.linear(x); random.random()", "python random numbers"),
        ("return y * 2, x", "y = y * 2; x.add_(1); return y, x", "other state after it: input[0][0]"),
        ("ValueError", "RuntimeError", "call 3 raised ValueError: too many, now raised RuntimeError: too many"),
        ('raise ValueError("too many")', "pass", "call 3 raised ValueError: too many, now returned"),
        ('.warning("scaling")', '.info("scaling")', "call 1, message 1"),
        ('.warning("scaling")', '.warning("scaling", exc_info=ValueError("x"))', "call 1, message 1"),
        ('warnings.warn("twice", stacklevel=1)', "pass", "call 1, message 2"),
        ('print("scaled", 2)', 'print("scaled", 3)', "call 1, message 3"),
    ],
)
def test_difference_is_seen(worktree: Callable[[str], Path], tmp_path: Path, old: str, new: str, told: str) -> None:
    assert told in changes(worktree, tmp_path, old, new)


def test_messages_come_in_order_with_their_place(worktree: Callable[[str], Path], tmp_path: Path) -> None:
    call = observed(worktree(MODEL.replace("(3, 4)", "(1, 4)")), "scale", tmp_path / "run")[1]
    told = [(message.stream, message.level, message.text, message.where) for message in call.messages]
    assert told == [
        ("scale", "WARNING", "scaling", "measured.py:forward"),
        ("warnings", "UserWarning", "twice", "measured.py"),
        ("stdout", "", "scaled 2\n", ""),
    ]


def test_gradient_that_changes_is_seen(worktree: Callable[[str], Path], tmp_path: Path) -> None:
    told = changes(worktree, tmp_path, "y * 2, x", "y + y.detach(), x", name="learning")
    assert "gradient of linear.weight" in told
    assert "[0]: " not in told


@pytest.mark.parametrize("output", ["y * 2, x", "Output(y * 2, x)", "torch.complex(y, y), x", "{1: [y]}"])
def test_gradient_that_is_gone_is_seen_wherever_the_output_is(
    worktree: Callable[[str], Path], tmp_path: Path, output: str
) -> None:
    made = MODEL.replace("    class Scale", OUTPUT + "    class Scale").replace("y * 2, x", output)
    made = made.replace("self.linear(x)", "x @ self.linear.weight.t() + self.linear.bias")
    before = observed(worktree(made), "learning", tmp_path / "before")
    cut = worktree(made.replace("weight.t()", "weight.detach().t()"))
    after = observed(cut, "learning", tmp_path / "after", tmp_path / "before")
    told = "call 1, gradient of linear.weight: torch.float32 (4, 4) became none"
    assert eager_differences(before, after) == (told,)
    assert compiled_difference(before[0], after[0]) == told.removeprefix("call 1, ")


def test_state_that_begins_to_share_memory_is_seen(worktree: Callable[[str], Path], tmp_path: Path) -> None:
    apart, shared = "self.last = self.seen.clone()[None]", "self.last = self.seen[None]"
    before = observed(worktree(MODEL.replace("self.last = x.shape", apart)), "scale", tmp_path / "before")
    tied = worktree(MODEL.replace("self.last = x.shape", shared))
    after = observed(tied, "scale", tmp_path / "after", tmp_path / "before")
    assert "call 1, other state after it: last" in "\n".join(eager_differences(before, after))


def test_weights_of_another_shape_are_refused(worktree: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="the weights of the first arm do not fit"):
        changes(worktree, tmp_path, "Linear(4, 4)", "Linear(4, 4, bias=False)")


def test_inputs_of_another_shape_are_refused(worktree: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="other inputs than in the first arm"):
        changes(worktree, tmp_path, "rand(3, 4)", "rand(5, 4)")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("raise KeyError('x')", "measured:make raised KeyError: 'x' (measured.py:3)"),
        ("import sys; sys.exit(4)", "measured:make called sys.exit(4)"),
        ("return 3", "measured:make must return (module, inputs) or (module, inputs, options), not int"),
        ("return 3, (1,)", "measured:make returns a int, which cannot be called"),
        ("return abs, 'text'", "measured:make returns inputs of type str"),
        ("return abs, []", "measured:make returns no inputs"),
        ("return abs, (1,), {'grad': True}", "measured:make returns unknown options grad"),
    ],
)
def test_bad_factory_is_told_in_one_line(worktree: Callable[[str], Path], body: str, told: str) -> None:
    root = worktree(f"def make():\n    print()\n    {body}\n".replace("print()", "pass"))
    with pytest.raises(LoadError) as caught:
        factory(root, "make").make()
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("measured", "'measured' is not package.module:factory"),
        ("measured:", "'measured:' is not package.module:factory"),
        ("measured:missing", "measured:missing cannot be imported: AttributeError"),
        ("measured:number", "measured:number is no factory: a int cannot be called"),
        ("missing_module:make", "missing_module:make cannot be imported: ModuleNotFoundError"),
    ],
)
def test_bad_name_is_told_in_one_line(worktree: Callable[[str], Path], name: str, told: str) -> None:
    with pytest.raises(LoadError) as caught:
        load_factory(worktree("number = 3"), name)
    assert str(caught.value).startswith(told)


def test_package_imported_from_elsewhere_is_refused(worktree: Callable[[str], Path], tmp_path: Path) -> None:
    elsewhere = tmp_path / "site" / "installed_twice"
    elsewhere.mkdir(parents=True)
    (elsewhere / "__init__.py").write_text("")
    root = worktree("def make():\n    import torch\n    return torch.nn.Identity(), (1,)\n")
    (root / "installed_twice").mkdir()
    (root / "installed_twice" / "__init__.py").write_text("")
    sys.path.insert(0, str(elsewhere.parent))
    __import__("installed_twice")
    with pytest.raises(LoadError, match=r"installed_twice was imported from .*, not from the worktree"):
        factory(root, "make").make()


def test_factory_that_uses_nothing_of_the_worktree_is_refused(tmp_path: Path) -> None:
    def make() -> tuple[torch.nn.Module, tuple[int]]:
        return torch.nn.Identity(), (1,)

    with pytest.raises(LoadError, match="imported nothing from the worktree"):
        Factory(tmp_path, "elsewhere:make", make).make()


@pytest.mark.parametrize("folder", ["", "src", "python", "libs/core", "packages/one/src"])
def test_package_is_found_in_the_usual_folders(worktree: Callable[[str], Path], tmp_path: Path, folder: str) -> None:
    worktree("")
    root = tmp_path / "tree"
    package = root / folder / "measured"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import torch\ndef make(): return torch.nn.Identity(), (1,)\n")
    sys.modules.pop("measured", None)
    add_to_path(root, "measured:make")
    assert factory(root, "make").make().module is not None


class Tally(torch.nn.Module):
    tally: torch.Tensor

    def __init__(self, step: float) -> None:
        super().__init__()
        self.step = step
        self.register_buffer("tally", torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.step:
            self.tally = self.tally + self.step
        return x * 2


@pytest.mark.parametrize(
    ("eager", "compiled", "told"),
    [
        (1.0, 1.0, None),
        (1.0, 1.0000001, None),
        (1.0, 0.0, "buffer tally: written in eager mode only"),
        (0.0, 1.0, "buffer tally: written in compiled code only"),
        (1.0, 2.0, "buffer tally: Tensor-likes are not close!"),
    ],
)
def test_buffers_that_compiled_code_leaves_otherwise_are_told(
    tmp_path: Path, eager: float, compiled: float, told: str | None
) -> None:
    found = []
    for number, step in enumerate((eager, compiled)):
        tally = Tally(step)
        model = Model(tally, (Call((torch.ones(2),)), Call((torch.ones(2),))), gradients=False)
        save(observe(model, tally, tmp_path), tmp_path / f"{number}.pt")
        found.append(load(tmp_path / f"{number}.pt"))
    for old, new in zip(*found, strict=True):
        difference = compiled_difference(old, new)
        assert difference is None if told is None else told in str(difference)


def test_memory_that_a_call_gives_up_is_held_until_its_outputs_are_compared() -> None:
    """The allocator may give the address of what `.data = ...` replaced to an output, which then seems to share it."""
    layer = torch.nn.Linear(4, 4)
    known, held = _memory(Model(layer, (Call((torch.ones(2, 4),)),), False), Call((torch.ones(2, 4),)))
    (address,) = [each for each, name in known.items() if name == "bias"]
    layer.bias.data = torch.zeros(4)
    assert layer.bias.untyped_storage().data_ptr() != address
    assert address in {each.untyped_storage().data_ptr() for each in held}
