"""Handlers for exceptions that torch never raises: those of the project and of other libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.fixes import fixed_among

_SOURCE = """
import torch
from torch import nn

from errors import Broken, Odd, TooShort


class Part(nn.Module):
    def forward(self, x: torch.Tensor):
        {statement}
        return x * 2
"""
_ERRORS = """
class TooShort(Exception):
    pass


class Odd(TooShort, ValueError):
    pass


class Strange(Odd):
    pass


Broken = RuntimeError
"""
_CALLER = """
import lmdb
from model import Part
from errors import Broken, Odd, TooShort


def run(x):
    try:
        return Part()(x)
    except {handled}:
        return None
"""
_GUARD = "if (x < 0).any():\n            raise {raised}"
_ROWS = "x = x[x > 0].exp()"


def _is_fixed(folder: Path, statement: str, handled: str, *, opaque: bool = False) -> bool:
    folder.mkdir(exist_ok=True)
    source = _SOURCE.format(statement=statement)
    others = {"errors.py": _ERRORS, "caller.py": _CALLER.format(handled=handled)}
    return fixed_among(folder, source, others, opaque=opaque)[0] != source


@pytest.mark.parametrize(
    "handled", ["TooShort", "Odd", "lmdb.MapFullError", "(TooShort, lmdb.Error)", "NotImplementedError"]
)
def test_what_torch_raises_is_none_of_theirs(tmp_path: Path, handled: str) -> None:
    assert _is_fixed(tmp_path, _GUARD.format(raised='ValueError("negative")'), handled)
    assert _is_fixed(tmp_path, _ROWS, handled, opaque=True)


@pytest.mark.parametrize(
    ("raised", "handled"),
    [
        ("TooShort()", "TooShort"),
        ("Odd()", "TooShort"),
        ("Odd", "Odd"),
        ("NotImplementedError", "NotImplementedError"),
        ("x.error", "TooShort"),
        ('ValueError("negative")', "(TooShort, ValueError)"),
        ('RuntimeError("negative")', "Broken"),
    ],
)
def test_what_they_are_raised_for_they_catch(tmp_path: Path, raised: str, handled: str) -> None:
    assert not _is_fixed(tmp_path, _GUARD.format(raised=raised), handled)


def test_an_operator_may_hold_what_raises_them(tmp_path: Path) -> None:
    rows = "for k in torch.unique(x.round()):\n            x[x.round() == k] = float(k)"
    assert _is_fixed(tmp_path / "one", rows, "ArithmeticError", opaque=True) is False
    assert _is_fixed(tmp_path / "two", rows, "TooShort", opaque=True) is False


@pytest.mark.parametrize("handled", ["Broken", "RuntimeError", "(TooShort, RuntimeError)"])
def test_who_catches_what_torch_raises_catches_rows_too(tmp_path: Path, handled: str) -> None:
    assert not _is_fixed(tmp_path, _ROWS, handled, opaque=True)


_HELD = """
    try:
        return Part()(x)
    except ValueError as error:
        {handler}
"""
_TOLD = """
    with Told():
        return Part()(x)


class Told:
    def __enter__(self):
        pass

    def __exit__(self, kind, value, trace):
        if kind is not None:
            {handler}
"""


@pytest.mark.parametrize(
    ("inner", "handler", "beside", "caught"),
    [
        (_HELD, "raise TooShort from error", "", True),
        (_HELD, "raise errors.TooShort('x')", "import errors", True),
        (_HELD, "raise Short() from error", "from errors import TooShort as Short", True),
        (_HELD, "raise told(error)", "def told(error):\n    return TooShort(error)", True),
        (_HELD, "other = TooShort()\n        raise other", "", True),
        (_HELD, "raise Kept", "Kept = TooShort", True),
        (_HELD, "raise Local from error", "class Local(TooShort):\n    pass", True),
        (_HELD, "raise errors.Strange", "import errors", True),
        (_HELD, "raise KEPT", "KEPT = TooShort()", True),
        (_HELD.replace("try:", "made = TooShort()\n    try:"), "raise made", "", True),
        (
            _HELD,
            "print(error)\n        raise",
            "def other(kept):\n    kept[0] = error = TooShort()\n    raise error",
            False,
        ),
        (_HELD, "complain()", "def complain():\n    raise TooShort('complaint')", True),
        (_HELD, "raise", "def complain():\n    raise TooShort('complaint')", False),
        (_HELD, "print(error)\n        raise", "", False),
        (_TOLD, "raise TooShort from value", "", True),
        (_TOLD, "print(value)", "", False),
    ],
)
def test_what_a_handler_makes_of_it_they_catch(
    tmp_path: Path, inner: str, handler: str, beside: str, caught: bool
) -> None:
    other = f"""
from errors import TooShort
from model import Part

{beside}


def outer(x):
    try:
        return inner(x)
    except TooShort:
        return None


def inner(x):{inner.format(handler=handler)}
"""
    source = _SOURCE.format(statement=_GUARD.format(raised='ValueError("negative")'))
    others = {"errors.py": _ERRORS, "between.py": other}
    assert (fixed_among(tmp_path, source, others)[0] == source) is caught


@pytest.mark.parametrize(
    ("handled", "handler", "made"),
    [
        ("ValueError", "raise", False),
        ("ValueError", "raise NotImplementedError from error", True),
        ("NotImplementedError", "raise NotImplementedError('another text')", False),
        ("(NotImplementedError, ValueError)", "raise NotImplementedError('another text')", True),
    ],
)
def test_a_handler_may_say_that_something_is_not_implemented(
    tmp_path: Path, handled: str, handler: str, made: bool
) -> None:
    other = f"""
from model import Part


def inner(x):
    try:
        return Part()(x)
    except {handled} as error:
        {handler}


def outer(x):
    try:
        return inner(x)
    except NotImplementedError:
        return None
"""
    source = _SOURCE.format(statement=_GUARD.format(raised='ValueError("negative")'))
    others = {"errors.py": _ERRORS, "between.py": other}
    assert (fixed_among(tmp_path, source, others)[0] == source) is made
