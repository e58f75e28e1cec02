"""The builder files: which package, from where, and functions that make its models."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphmend_evaluation.others import stubs

MODELS = Path(__file__).resolve().parents[2] / "others" / "models"
TRAINING = {"train": True, "gradients": True}
"""The options of a builder that returns none: losses and trainable models are measured as they are trained."""
SPLIT_SEED = "2026-11-22"
SEEN = frozenset(
    {
        "asteroid", "davidmrau_moe", "egnn_pytorch", "encodec", "entmax", "fairseq", "freia", "informer2020", "lightly",
        "lightglue_cvg", "mixture_of_experts", "monai", "nflows", "piq", "pytorch_metric_learning", "recbole",
        "spikingjelly", "torchrl", "torchvision", "vector_quantize_pytorch", "vit_pytorch", "yolox",
    }
)  # fmt: skip
"""Packages that the seed put into the exam, and of which somebody who wrote rules saw code or findings: now study."""
_PIP = re.compile(r"pip:(?P<name>[\w.-]+)==(?P<version>[\w.+!-]+)")
_GITHUB = re.compile(r"github:(?P<owner>[\w-]+)/(?P<name>[\w.-]+)@(?P<commit>[0-9a-f]{40})")


class BuilderError(Exception):
    """A builder file that cannot be used. The text is one line: which file, what, way out."""


@dataclass(frozen=True)
class Package:
    """One builder file.

    `source` is `pip:NAME==VERSION` or `github:OWNER/NAME@COMMIT`, `imports` what its models import of it (the package
    or module that is measured), `folder` where that lies below the package's root, `stubs` modules that it imports and
    its models do not need, `removed` a folder of binaries that cannot be loaded, `models` the names of the builders.
    """

    name: str
    path: Path
    source: str
    imports: str
    folder: str
    stubs: tuple[str, ...]
    removed: str
    models: tuple[str, ...]

    @property
    def half(self) -> str:
        """`study` or `exam`."""
        return half(self.name)


def half(package: str) -> str:
    """The half that a package belongs to: its name and the seed decide, so new packages move no other one."""
    if package in SEEN:
        return "study"
    return "exam" if hashlib.sha256(f"{SPLIT_SEED} {package}".encode()).digest()[0] % 2 else "study"


def packages(folder: Path = MODELS) -> tuple[Package, ...]:
    """All builder files of a folder, read without running them. Raises `BuilderError`."""
    return tuple(read(path) for path in sorted(folder.glob("*.py")) if not path.name.startswith("_"))


def read(path: Path) -> Package:
    """One builder file. Raises `BuilderError` when a constant is missing."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    source, imports = str(constants.get("SOURCE", "")), str(constants.get("IMPORTS", ""))
    if not (_PIP.fullmatch(source) or _GITHUB.fullmatch(source)):
        raise BuilderError(f"{path}: SOURCE must be pip:NAME==VERSION or github:OWNER/NAME@COMMIT, not {source!r}")
    if not imports:
        raise BuilderError(f"{path}: IMPORTS must name the package that the models import")
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    folder, stubbed = str(constants.get("FOLDER", "")), str(constants.get("STUBS", "")).split()
    removed = str(constants.get("REMOVED", ""))
    return Package(path.stem, path, source, imports, folder, tuple(stubbed), removed, tuple(names))


def pip_requirement(source: str) -> str | None:
    """`NAME==VERSION`, None for a repository."""
    match = _PIP.fullmatch(source)
    return None if match is None else f"{match['name']}=={match['version']}"


def repository(source: str) -> tuple[str, str, str]:
    """Owner, name and commit. Raises `BuilderError` for a package of the registry."""
    match = _GITHUB.fullmatch(source)
    if match is None:
        raise BuilderError(f"{source} is no repository")
    return match["owner"], match["name"], match["commit"]


def load(package: Package, model: str) -> Callable[[], Any]:
    """The builder `model` of a file: a factory as `graphmend evaluate --model` takes them."""
    spec = importlib.util.spec_from_file_location(f"_builders_{package.name}", package.path)
    if spec is None or spec.loader is None:
        raise BuilderError(f"{package.path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    factory: Callable[[], Any] = getattr(module, model)

    def made() -> Any:
        found = factory()
        stubs.let_operators_pass()
        return (*found, TRAINING) if len(found) == 2 else found

    return made
