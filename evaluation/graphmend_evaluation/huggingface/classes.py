"""Which classes of `transformers` files are worth a measurement, found in the files' text. Nothing is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmend_evaluation.names import HUGGINGFACE

MOST_OF_A_FILE = 2
MOST_USERS = 6

_MODELING = re.compile(r"modeling_(?!tf_|flax_)\w+\.py$")
# The first run most: they encode, decode and loop.
_HEADS = (
    "ForConditionalGeneration",
    "ForCausalLM",
    "LMHeadModel",
    "MTModel",
    "ForPreTraining",
    "ForObjectDetection",
    "ForUniversalSegmentation",
    "ForInstanceSegmentation",
    "ForTextToSpeech",
    "ForCTC",
    "ForDepthEstimation",
    "ForPrediction",
    "ForMaskedLM",
    "Model",
)
_NOT_MODELS = ("PreTrainedModel", "PretrainedModel")


@dataclass(frozen=True)
class _Class:
    name: str
    bases: tuple[str, ...]
    mentions: frozenset[str]
    runs: bool


def models_of_files(root: Path, changed: Sequence[str]) -> tuple[str, ...]:
    """Names of models that run what the files hold; see `sources.huggingface_models`."""
    names: list[str] = []
    for path in changed:
        own = _models(root, path) if _MODELING.search(path) else []
        names += own or [name for user in _users(root, path, set(changed)) for name in _models(root, user)[:1]]
    return tuple(dict.fromkeys(names))


def _models(root: Path, path: str) -> list[str]:
    file = root / path
    try:
        text = file.read_text(encoding="utf-8")
        classes = _classes(ast.parse(text))
    except (OSError, SyntaxError, ValueError):
        return []  # nothing can be measured in a file that Python cannot read
    module = module_name(root, path)
    chosen = choose(classes)
    names = [f"{HUGGINGFACE}:{module}:{name}" for name in chosen]
    if chosen and "float16" in text and re.search(r"\bclamp\b|\bisinf\b|finfo", text):
        names.append(f"{names[0]}#float16")  # what only half precision reaches
    return names


def choose(classes: Mapping[str, _Class]) -> list[str]:
    """Models, the most telling first, until they reach every class of the file that runs, or are enough."""
    candidates = sorted((each for each in classes.values() if _is_model(each, classes)), key=_rank)
    models = {each.name for each in candidates}
    missing = {name for name, each in classes.items() if each.runs and name not in models}
    chosen: list[str] = []
    for each in candidates:
        reached = _reached(each.name, classes)
        if not chosen or (_rank(each)[0] < len(_HEADS) and reached & missing):
            chosen.append(each.name)
            missing -= reached
        if len(chosen) == MOST_OF_A_FILE:
            break
    return chosen


def module_name(root: Path, path: str) -> str:
    """The dotted name by which a file is imported."""
    file = root / path
    parts = [file.stem]
    folder = file.parent
    while folder != root and (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def _rank(each: _Class) -> tuple[int, str]:
    place = next((number for number, head in enumerate(_HEADS) if each.name.endswith(head)), len(_HEADS))
    return place, each.name


def _is_model(each: _Class, classes: Mapping[str, _Class]) -> bool:
    if each.name.endswith(_NOT_MODELS) or not each.runs:
        return False
    return any(base.endswith(_NOT_MODELS) for base in _ancestors(each, classes))


def _ancestors(each: _Class, classes: Mapping[str, _Class]) -> Iterable[str]:
    waiting, seen = list(each.bases), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        if name in classes:
            waiting += classes[name].bases


def _reached(name: str, classes: Mapping[str, _Class]) -> set[str]:
    """Classes that one mentions, and those in turn."""
    waiting, seen = [name], set()
    while waiting:
        current = waiting.pop()
        if current in seen or current not in classes:
            continue
        seen.add(current)
        # The common base lists every model of the file.
        if not current.endswith(_NOT_MODELS):
            waiting += classes[current].mentions
    return seen


def _classes(tree: ast.Module) -> dict[str, _Class]:
    tables = {
        target.id: _names(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[str, _Class] = {}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        mentions = _names(node)
        mentions |= {name for table in mentions & tables.keys() for name in tables[table]}
        bases = tuple(ast.unparse(base).rpartition(".")[2] for base in node.bases)
        runs = any(isinstance(item, ast.FunctionDef) and item.name == "forward" for item in node.body)
        inherits = any(base in found and found[base].runs for base in bases)
        found[node.name] = _Class(node.name, bases, frozenset(mentions), runs or inherits)
    return found


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _users(root: Path, path: str, changed: set[str]) -> list[str]:
    """A few modeling files that import this one, from the whole alphabet; changed ones speak for themselves."""
    stem = Path(path).stem
    imports = re.compile(rf"^\s*(?:from|import)\s+[\w.]*\b{re.escape(stem)}\b", re.MULTILINE)
    folders = [folder for folder in (root / "src" / "transformers", root / "transformers") if folder.is_dir()]
    found = []
    for file in sorted(item for folder in folders for item in folder.glob("models/*/modeling_*.py")):
        relative = file.relative_to(root).as_posix()
        if _MODELING.search(relative) and relative not in changed and relative != path:
            text = file.read_text(encoding="utf-8", errors="replace")
            if imports.search(text):
                found.append(relative)
    step = max(1, len(found) // MOST_USERS)
    return found[::step][:MOST_USERS]
