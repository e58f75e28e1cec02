"""Translate failed guards of torch.compile into plain sentences."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from graphmend_codemod.trace.document import Reason

_NUMBER = re.compile(r"^\d+/\d+: ")
_SAID = re.compile(r"\s+#\s.*$")
_ADDRESS = re.compile(r"^(___check_(?:obj_id|type_id)\(.+?, )\d+")
_LIMIT = 300
_EQUAL = re.compile(r"^(\S.*?) == (?!\.\.\.$)(.+)$")
_HARMLESS = re.compile(r"True|False|None|-?\d+")

_STATES = {
    "grad_mode": "gradients were turned on or off (as by `torch.no_grad`)",
    "autocast_state": "autocast",
    "torch_function": "a mode of `__torch_function__`",
    "deterministic_algorithms": "deterministic mode",
    "num_threads": "the number of threads",
    "default_dtype": "the default dtype",
}

_TENSOR = "^tensor '(.+)' "
_ANEW = "a Python value that changes from call to call is compiled anew for each"
_FORMS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        rf"{_TENSOR}size mismatch at index (\d+)\. expected (\S+), actual (\S+)$",
        "size {2} of {0} changed from {3} to {4}; if it varies, mark it with `torch._dynamo.mark_dynamic` or compile "
        "with `dynamic=True`",
    ),
    (
        rf"{_TENSOR}stride mismatch at index (\d+)\. expected (\S+), actual (\S+)$",
        "stride {2} of {0} changed from {3} to {4}: another memory layout",
    ),
    (rf"{_TENSOR}rank mismatch\. expected (\S+), actual (\S+)$", "{0} has {3} dimensions and had {2}"),
    (rf"{_TENSOR}dtype mismatch\. expected (\S+), actual (\S+)$", "the dtype of {0} changed from {2} to {3}"),
    (
        rf"{_TENSOR}requires_grad mismatch\. expected requires_grad=(?:0|False)$",
        "{0} requires gradients now, and did not",
    ),
    (rf"{_TENSOR}requires_grad mismatch\. expected requires_grad=\S+$", "{0} requires no gradients any more"),
    (
        rf"{_TENSOR}dispatch key set mismatch\. .*$",
        "{0} is on another device, or gradients were turned on or off",
    ),
    (
        r"^___check_type_id\((.+?), (?:\d+|\.\.\.)\)(?:, type=<class '(.+)'>)?.*$",
        lambda m: f"{_name(m[1])} is of another class" + (f" than `{m[2]}`" if m[2] else ""),
    ),
    (r"^___check_obj_id\((.+?), (?:\d+|\.\.\.).*$", "{0} is a different object"),
    (
        r"^(?:GLOBAL_STATE changed:?|___check_global_state\(\))(.*)$",
        lambda m: f"a global state of torch changed: {_states(m[1])}",
    ),
    (r"^not (.+)$", "{0} was false and is true"),
    (
        r"^2 <= (.+)\.size\(\)\[(\d+)\]$",
        "size {2} of {0} is 0 or 1 now, which torch compiles apart from other sizes",
    ),
    (r"^len\((.+)\) != 0$", "{0} is empty now, and was not"),
    (r"^(\S.*) is None$", "{0} was None and is not any more"),
    (r"^(\S.*) is not None$", "{0} is None now, and was not"),
    (r"^(\S.*? (?:[<>]=?|!=) .+)$", "{0} is not true any more"),
    (r"^(\S.*?) == \.\.\.$", f"{{0}} is not what it was: {_ANEW}"),
    (r"^(\S.*?) == (.+)$", f"{{0}} was {{2}} and is not any more: {_ANEW}"),
)
"""The forms of guards that failed, and what they mean: `{0}` is the first group as its author would write it."""


def reasons(texts: Iterable[str]) -> tuple[Reason, ...]:
    """The guards that failed, the most frequent first. A text holds a line for each, or is a JSON list of them."""
    counted: Counter[str] = Counter()
    for text in texts:
        counted.update(set(_guards(text)))
    return tuple(Reason(guard, in_words(guard), count) for guard, count in counted.most_common())


def in_words(guard: str) -> str:
    """What a guard that failed means; the guard itself where its form is not known."""
    for form, words in _FORMS:
        match = re.match(form, guard)
        if match is not None:
            return words.format(_name(match[1]), *match.groups()) if isinstance(words, str) else words(match)
    return guard


def _listed(text: str) -> list[str]:
    """The texts of a JSON list; the text itself where it is none."""
    try:
        every = json.loads(text) if text.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        every = None
    return [str(each) for each in every] if isinstance(every, list) else [text]


def _guards(text: str) -> Iterator[str]:
    lines = [line.strip() for each in _listed(text) for line in each.splitlines()]
    for line in [line for line in lines if _NUMBER.match(line)] or lines:  # below some stands a stack of the user's
        guard = _SAID.sub("", _NUMBER.sub("", line)).strip()
        if guard and not guard.startswith("#"):
            yield _without_values(guard)[:_LIMIT]


def _without_values(guard: str) -> str:
    """The guard without what may come from a tensor or is the user's own: floats, texts, numbers without a name.
    Addresses, which differ from run to run, are left out as well."""
    guard = _ADDRESS.sub(r"\1...", guard)
    match = _EQUAL.match(guard)
    if match is None or match[1].startswith("tensor '"):
        return guard
    nameless = "___stack" in match[1] and match[2] not in {"True", "False", "None"}
    return guard if _HARMLESS.fullmatch(match[2]) and not nameless else f"{match[1]} == ..."


def _states(named: str) -> str:
    """The states that torch names, in words; those that it asks for where it names none."""
    words = [_STATES.get(each, each) for each in named.split()]
    return ", ".join(words) or "gradients, autocast, the number of threads, or deterministic mode"


def _name(source: str) -> str:
    """`L['self']._modules['a']` as its author would write it, as code."""
    if source.strip().startswith(("___stack", "L['___stack")):
        return "an intermediate value"
    source = re.sub(r"\b[LG]\['(\w+)'\]", r"\1", source.strip())
    source = re.sub(r"\.(?:_modules|_parameters|_buffers)\['([^']+)'\]", r".\1", source)
    source = re.sub(r"^___(?:from_numpy|check_\w+)\((.+)\)$", r"\1", source)
    return f"`{source}`"
