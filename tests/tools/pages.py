"""The sentence of a rule's page that tells of a difference between compiled code before and after a fix."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphmend_codemod.reporting.rules import ERRORS
from graphmend_codemod.rules.framework.registry import all_rules
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, EIGHT_BITS, FLOAT_WARNING, WRITES_ANYWAY

_CONTRACT = {
    "messages": ("compiled_logs", ""),
    "exception": ("compiled_exceptions", "RuntimeError"),
    "exception lost": ("compiled_exceptions", "no error|empty range|is not raised|guards = skip, none|kept, but"),
    "exception added": ("compiled_exceptions", "raises one"),
    "gradients": ("compiled_exceptions", "gradient"),
    "state": ("compiled_state", ""),
    "inputs": ("compiled_state", ""),
}
"""For each kind of difference the field of a contract that may tell of it, and words that it must have."""


_SHOWN = {
    FLOAT_WARNING: r"Converting a tensor with requires_grad=True to a scalar",
    EIGHT_BITS: r"became \('raised'.*(?i:float8|add)",
    ASKS_CLASSES: r"^[^:]*, call \d+: state\.[\d.]+: \(\('str', ",
}
"""What a difference must look like for a sentence that tells of one thing alone."""
_WRITTEN = "modified by an inplace operation"
_BY_THE_COMPILER = r"became \('torch\._dynamo\.exc\.TorchRuntimeError'"


def kind_of(complaint: str, where: str) -> str:
    """What differs, from a complaint of `compiled_differences` about the call `where`.

    One of `exception added`, `exception lost`, `outcome`, `inputs`, `gradients`, `state`.
    """
    rest = complaint.removeprefix(f"{where}: ")
    head = rest.partition(":")[0]
    if head.endswith(" only in eager mode"):
        return "exception lost"
    if head.endswith(" only compiled"):
        return "exception added"
    return re.split(r"[.:]", rest)[0]


def sentence(kind: str, codes: Iterable[str], text: str) -> str:
    """What the contract of one of the applied rules says of the difference `text`; empty when none does."""
    if kind == "exception" and re.search(_BY_THE_COMPILER, text):
        return f"index: {ERRORS}"
    name, words = _CONTRACT.get(kind, ("", ""))
    applied = frozenset(codes)
    for rule in all_rules():
        said = getattr(rule.contract, name) if name and rule.code in applied else "kept"
        written = kind == "gradients" and WRITES_ANYWAY in said
        shown = _WRITTEN if written else _SHOWN.get(said, "")
        if said != "kept" and re.search(words, said) and re.search(shown, text):
            return f"{rule.code}: {said}"
    return ""
