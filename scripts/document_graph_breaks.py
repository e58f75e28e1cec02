"""Write `docs/graph-breaks.md`, and for `graphmend trace` `answers.json`: what graphmend answers to each kind of graph
break that torch knows.

The answers stand in `graph_breaks.tsv` beside this script, one kind a line: torch's identifier, the answer (`rule`,
`setting`, `advice` or `user error`), its detail (rule codes, the setting, or a topic of `TOPICS`), torch's name for it.

python scripts/document_graph_breaks.py            write the page
python scripts/document_graph_breaks.py --check    exit with 1 if the page is not up to date
python scripts/document_graph_breaks.py --compare FOLDER_OR_FILE
                                                   say what another torch names that the data does not answer
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from graphmend_codemod.reporting.rules import page_name
from graphmend_codemod.rules.framework.registry import all_rules

HERE = Path(__file__).resolve().parent
DATA = HERE / "graph_breaks.tsv"
PAGE = HERE.parent / "docs" / "graph-breaks.md"
ANSWERS_FILE = HERE.parent / "graphmend_codemod" / "trace" / "answers.json"
ANSWERS = ("rule", "setting", "advice", "user error")
ADVICE_PAGES = {"GM701": "capture-flags.md"}

TOPICS = {
    "autograd": "Keep calls into autograd (`backward`, `autograd.grad`, hooks, custom Functions of unusual form) "
    "outside the compiled region, or compile the forward alone.",
    "backend": "The backend failed on a graph that was captured whole: try `backend='eager'`, and report it.",
    "bytecode": "Write the construct in a plainer way; Dynamo does not know its bytecode yet.",
    "context": "Enter the context manager outside the compiled region.",
    "distributed": "Keep communication outside the compiled region, or use functional collectives.",
    "dynamic-shape": "A size depends on data: pad to a fixed size, or mask instead of selecting.",
    "environment": "A package that the code needs is missing.",
    "exceptions": "Do not use exceptions for control flow in compiled code.",
    "fails-in-eager": "Most likely the same code raises without `torch.compile`: run it in eager mode first.",
    "fails-on-symbols": "Run it without `torch.compile` first: most likely it raises there, too. If not, a symbol is "
    "given where a number or bool is needed: write `True if n > 1 else False` for `is_causal=n > 1`.",
    "fake": "An operator has no implementation for fake tensors: register one with `torch.library.register_fake`.",
    "higher-order": "Functions given to control flow operators and transforms must be pure functions of tensors.",
    "iteration": "Make a list or tuple of the iterator before the compiled region.",
    "module": "Build modules, and anything else that runs a constructor, before the compiled region.",
    "numpy": "Use the torch function that does the same; numpy arrays are traced only as far as torch has a twin.",
    "on-purpose": "The break was asked for; take the call or the decorator away where it is not wanted.",
    "opaque": "Opaque objects must be made outside and handed in.",
    "optimizer": "Compile the optimizer's step by itself.",
    "parameter": "Make parameters in `__init__`, not in `forward`.",
    "python-class": "Keep classes with hooks into attribute access, construction or metaclasses out of `forward`; "
    "plain attributes and dataclasses are traced.",
    "python-object": "Compute the Python value in `__init__`, or behind `torch.compiler.assume_constant_result` when "
    "it never changes.",
    "reconstruct": "The value crosses a break that has another cause: remove that break, and this one goes.",
    "reported-again": "Torch names the frame around a break; the break itself is reported with its own kind.",
    "restarts": "Tracing had to begin again too often: compile smaller parts, and report it.",
    "script": "Compile the original module, not its scripted form.",
    "streams": "Wait for events and streams outside the compiled region.",
    "tensor-method": "Use the functional form of the operation (a new tensor instead of resizing, setting or sharing).",
    "tensor-subclass": "Tensor subclasses, nested and sparse tensors are traced in part: convert at the border.",
    "triton": "Wrap the kernel with `torch.library.triton_op`, and keep to what that supports.",
    "untraced-python": "Dynamo does not trace this library call: use the torch function that does the same.",
    "value-in-python": "Python asks for a tensor's value: keep it a tensor (`torch.where`, `torch.cond`), or decide by "
    "shapes, dtypes or configuration.",
}


class Kind(NamedTuple):
    """One kind of graph break, and the answer to it."""

    identifier: str
    answer: str
    detail: str
    name: str


def kinds(data: Path = DATA) -> list[Kind]:
    """The kinds of the data file, in the order of their identifiers."""
    lines = data.read_text(encoding="utf-8").splitlines()
    return sorted(Kind(*line.split("\t")) for line in lines)


def mistakes(entries: Sequence[Kind]) -> list[str]:
    """What is wrong with the data: unknown answers, rules that do not exist, topics without a text, doubles."""
    codes = {rule.code for rule in all_rules()} | ADVICE_PAGES.keys()
    wrong = [
        f"{name} stands there twice"
        for name, times in Counter(kind.identifier for kind in entries).items()
        if times > 1
    ]
    for kind in entries:
        if kind.answer not in ANSWERS:
            wrong.append(f"{kind.identifier} has the unknown answer {kind.answer!r}")
        elif kind.answer == "rule" and not set(kind.detail.split()) <= codes:
            wrong.append(f"{kind.identifier} names a rule that does not exist: {kind.detail}")
        elif kind.answer in {"advice", "user error"} and kind.detail not in TOPICS:
            wrong.append(f"{kind.identifier} has the unknown topic {kind.detail!r}")
    return wrong


def registry(torch: Path | None = None) -> dict[str, str]:
    """Names of a torch's kinds of graph breaks by identifier, by default the installed one; torch is not imported.

    `torch` is the package's folder, a checkout of it, or the registry's file. FileNotFoundError without a registry.
    """
    if torch is None:
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.origin is None:
            raise FileNotFoundError("torch is not installed")
        torch = Path(spec.origin).parent
    path = torch
    for inside in ("torch", "_dynamo", "graph_break_registry.json"):
        path = path / inside if path.is_dir() and (inside != "torch" or (path / inside).is_dir()) else path
    entries = json.loads(path.read_text(encoding="utf-8"))
    return {identifier: versions[0]["Gb_type"] for identifier, versions in entries.items()}


def news(entries: Sequence[Kind], other: Mapping[str, str]) -> list[str]:
    """What another torch names that has no answer yet, names otherwise, or does not name any more; one line each."""
    known = {kind.identifier: kind for kind in entries}
    new = [f"{each} is new: {name}" for each, name in sorted(other.items()) if each not in known]
    renamed = [
        f"{each} is now called {name!r}, was {known[each].name!r}"
        for each, name in sorted(other.items())
        if each in known and " ".join(name.split()) != " ".join(known[each].name.split())
    ]
    gone = [f"{each} is gone: {kind.name}" for each, kind in known.items() if each not in other]
    return [*new, *renamed, *gone]


def page(entries: Sequence[Kind]) -> str:
    """The page as Markdown."""
    counts = Counter(kind.answer for kind in entries)
    pages = {rule.code: f"rules/{page_name(rule)}" for rule in all_rules()} | ADVICE_PAGES
    lines = [
        "# Graph breaks and what graphmend answers",
        "",
        "<!-- Written by scripts/document_graph_breaks.py from scripts/graph_breaks.tsv. -->",
        "",
        f"Torch names {len(entries)} kinds of graph breaks (up to 2.15). {counts['rule']} have a rule that",
        f"finds and mends their common forms, {counts['setting']} a setting of torch, {counts['advice']} are left",
        f"to you with advice, and {counts['user error']} come from code that is wrong, or that asks for the break.",
        "A rule mends a pattern, never a whole kind: what it leaves it reports, with the reason.",
    ]
    for title, answer in (
        ("Rules", "rule"),
        ("Settings", "setting"),
        ("Advice", "advice"),
        ("User errors", "user error"),
    ):
        lines += ["", f"## {title}", ""]
        chosen = [kind for kind in entries if kind.answer == answer]
        if answer in {"rule", "setting"}:
            lines += ["| kind | name | answer |", "|---|---|---|"]
            lines += [f"| {kind.identifier} | {_cell(kind.name)} | {_answer(kind, pages)} |" for kind in chosen]
            continue
        for topic in sorted({kind.detail for kind in chosen}):
            members = [kind for kind in chosen if kind.detail == topic]
            lines += [f"### {topic}", "", TOPICS[topic], "", "| kind | name |", "|---|---|"]
            lines += [f"| {kind.identifier} | {_cell(kind.name)} |" for kind in members]
            lines.append("")
        lines.pop()
    return "\n".join(lines) + "\n"


def answers(entries: Sequence[Kind]) -> str:
    """What to do about the kinds that no rule mends, by their identifiers, as JSON."""
    by_kind = {kind.identifier: f"set `{kind.detail}`" for kind in entries if kind.answer == "setting"}
    topics = {kind.identifier: kind.detail for kind in entries if kind.answer in {"advice", "user error"}}
    return json.dumps({"settings": by_kind, "topics": TOPICS, "kinds": topics}, indent=0, sort_keys=True) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("_", "\\_").replace("*", "\\*")


def _answer(kind: Kind, pages: dict[str, str]) -> str:
    if kind.answer == "setting":
        return f"`{kind.detail}`"
    return ", ".join(f"[{code}]({pages[code]})" for code in kind.detail.split())


def main(arguments: list[str]) -> int:
    """Write or compare; the exit code is 1 when they differ, 2 when the data is wrong."""
    parser = argparse.ArgumentParser(description="Write the page and the answers from scripts/graph_breaks.tsv.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if the page is not up to date")
    parser.add_argument(
        "--compare", metavar="TORCH", type=Path, help="say what another torch adds; 1 for unanswered kinds"
    )
    args = parser.parse_args(arguments)
    found = kinds()
    if args.compare is not None:
        lines = news(found, registry(args.compare))
        print("\n".join(lines))
        return 1 if any(" is new: " in line for line in lines) else 0
    if wrong := mistakes(found):
        print("\n".join(f"{DATA.name}: {each}" for each in wrong), file=sys.stderr)
        return 2
    texts = {PAGE: page(found), ANSWERS_FILE: answers(found)}
    if args.check:
        same = all(path.is_file() and path.read_text(encoding="utf-8") == text for path, text in texts.items())
        return 0 if same else 1
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
