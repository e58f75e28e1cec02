"""A module that raises, and a caller in another file that may catch it."""

from __future__ import annotations

from pathlib import Path

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api

GUARD = """
import torch
from torch import nn


def checked(x: torch.Tensor):
    if (x < 0).any():
        raise ValueError("negative")
    return x


class Part(nn.Module):
    def check(self, x):
        return checked(x)

    def forward(self, x: torch.Tensor):
        return self.check(x)
"""
_MANAGERS = """
import contextlib


@contextlib.contextmanager
def tolerant():
    try:
        yield
    except ValueError:
        pass


@contextlib.contextmanager
def strict():
    yield


@contextlib.contextmanager
def around():
    with strict():
        yield


@contextlib.contextmanager
def prepared():
    try:
        import numpy
    except ValueError:
        pass
    with tolerant():
        pass
    try:
        yield
    except ValueError as error:
        raise KeyError from error
    finally:
        print("left")


@contextlib.contextmanager
def twice():
    with strict(), tolerant():
        yield


@contextlib.contextmanager
def unknown():
    with library.manager():
        yield


@contextlib.contextmanager
def returning():
    try:
        yield
    finally:
        return


quiet = contextlib.suppress(ValueError)


def made():
    return contextlib.suppress(ValueError)


def attempt(function, *given):
    try:
        return function(*given)
    except ValueError:
        return given[0]


def attempted(function):
    def inner(*given):
        try:
            return function(*given)
        except ValueError:
            return given[-1]

    return inner


class Tolerant:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is not None


class Strict(Tolerant):
    def __exit__(self, kind, error, trace):
        self.done = True


class Counted(Strict):
    def __exit__(self, *given):
        self.count = 1
        return super().__exit__(*given)


class Passing(Tolerant):
    def __exit__(self, *given):
        return super().__exit__(*given)
"""
_CALLER = """
import contextlib

import torch
from torch import nn

import managers
from guard import Part, checked


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.parts = nn.ModuleList([Part(), Part()])
        self.more = nn.ModuleList(
            [
                Part(),
                Part(),
            ]
        )
        self.whole = nn.Sequential(Part(), nn.ReLU())
        self.quiet = contextlib.suppress(ValueError)

    def inner(self, x):
        return self.part(x)

    def forward(self, x):
{body}
        return x * 2
"""


def finding(project: Path, body: str, tail: str = "") -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    (project / "guard.py").write_text(GUARD)
    (project / "managers.py").write_text(_MANAGERS)
    (project / "caller.py").write_text(_CALLER.format(body=lines) + tail)
    answers = set()
    for paths in ([project], [project / "guard.py"]):
        found = api.check(paths, Settings(project), cache=False)
        assert not found.problems
        (each,) = (each for each in found.findings if each.code == "GM301")
        answers.add(each.declined or "")
    (answer,) = answers
    return answer
