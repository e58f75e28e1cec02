"""A hostile module as data: files of a small project, how the module is made, and what it is called with."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent, indent

INPUTS = (
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])",
    "torch.zeros(2, 3)",
    "torch.tensor([[1.0, nan, 3.0], [4.0, 0.5, inf]])",
)
"""Positive, negative, zero, and not finite: one call each, on one instance."""

TWO = (
    "torch.tensor([[1.0, 2.0, 3.0], [4.0, 0.5, 1.0]])",
    "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])",
    "torch.zeros(2, 3)",
)
"""Of both signs and zero, for what is not asked about numbers that are not finite."""

IMPORTS = """\
import contextlib
import logging
import math
import warnings

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

logger = logging.getLogger(__name__)
"""


@dataclass(frozen=True)
class Case:
    """One module. `files` are paths in the project and their text; `model.py` is always among them.

    `outside` is Python that no tool reads: it defines `make()`, which returns what is called. `main` is the module
    whose names the `inputs` may use. Each of `inputs` is a call: a tuple of arguments, a dict of keyword arguments, or
    one argument; `empty@ ` in front varies its tensors. `varied` cases are also run with such inputs throughout.
    """

    group: str
    name: str
    files: Mapping[str, str]
    inputs: tuple[str, ...] = INPUTS
    outside: str = "import model\n\ndef make():\n    return model.Model()\n"
    main: str = "model"
    training: tuple[bool, ...] = (False, True)
    varied: bool = True

    @property
    def title(self) -> str:
        """Group and name in one."""
        return f"{self.group}: {self.name}"


class Group:
    """Collects the cases of one class of mistakes; its methods are how cases are written down."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cases: list[Case] = []

    def add(
        self,
        name: str,
        body: str,
        *,
        args: str = "x: torch.Tensor",
        init: str = "",
        top: str = "",
        methods: str = "",
        base: str = "nn.Module",
        imports: str = IMPORTS,
        decorator: str = "",
        files: Mapping[str, str] | None = None,
        inputs: Sequence[str] = INPUTS,
        outside: str | None = None,
        make: str | None = None,
        training: Iterable[bool] = (False, True),
        varied: bool = True,
    ) -> None:
        """A module whose `forward` has this body. `make` is an expression over `model` and the other files."""
        parts = [
            imports,
            _block(top, 0),
            f"\n\nclass Model({base}):\n    def __init__(self):\n        super().__init__()\n",
        ]
        parts.append(_block(init, 2))
        parts.append(_block(methods, 1) and "\n" + _block(methods, 1))
        parts.append(f"\n{_block(decorator, 1)}    def forward(self, {args}):\n{_block(body, 2)}")
        self.whole(
            name,
            "".join(parts),
            files=files,
            inputs=inputs,
            outside=outside,
            make=make,
            training=training,
            varied=varied,
        )

    def whole(
        self,
        name: str,
        source: str,
        *,
        files: Mapping[str, str] | None = None,
        inputs: Sequence[str] = INPUTS,
        outside: str | None = None,
        make: str | None = None,
        training: Iterable[bool] = (False, True),
        varied: bool = True,
    ) -> None:
        """A whole `model.py`; `files` are the others, for which `IMPORTS` are added where they import nothing."""
        texts = {"model.py": dedent(source).lstrip("\n")}
        for path, text in (files or {}).items():
            texts[path] = dedent(text).lstrip("\n")
        if outside is None:
            modules = sorted({path.removesuffix(".py").partition("/")[0] for path in texts if path.endswith(".py")})
            imports = "\n".join(f"import {module}" for module in modules if module.isidentifier())
            outside = f"{imports}\n\n\ndef make():\n    return {make or 'model.Model()'}\n"
        if any(case.name == name for case in self.cases):
            raise ValueError(f"{self.name}: two cases are named {name}")
        self.cases.append(
            Case(self.name, name, texts, tuple(inputs), dedent(outside), "model", tuple(training), varied)
        )


def _block(text: str, depth: int) -> str:
    text = dedent(text).strip("\n")
    return f"{indent(text, '    ' * depth)}\n" if text else ""


def all_cases() -> list[Case]:
    """Every case of every file in `cases/`, in order."""
    from tests.adversarial import cases

    found: list[Case] = []
    for info in pkgutil.iter_modules(cases.__path__):
        module = importlib.import_module(f"{cases.__name__}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, Group):
                found += value.cases
    titles = [case.title for case in found]
    if len(set(titles)) != len(titles):
        raise ValueError(f"two cases have one title: {sorted(t for t in titles if titles.count(t) > 1)}")
    return found
