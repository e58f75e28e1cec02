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

_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(r"^tensor '(.+)' size mismatch at index (\d+)\. expected (\S+), actual (\S+)$"),
        lambda m: (
            f"size {m[2]} of {_name(m[1])} changed from {m[3]} to {m[4]}; if it varies, mark it with "
            "`torch._dynamo.mark_dynamic` or compile with `dynamic=True`"
        ),
    ),
    (
        re.compile(r"^tensor '(.+)' stride mismatch at index (\d+)\. expected (\S+), actual (\S+)$"),
        lambda m: f"stride {m[2]} of {_name(m[1])} changed from {m[3]} to {m[4]}: another memory layout",
    ),
    (
        re.compile(r"^tensor '(.+)' rank mismatch\. expected (\S+), actual (\S+)$"),
        lambda m: f"{_name(m[1])} has {m[3]} dimensions and had {m[2]}",
    ),
    (
        re.compile(r"^tensor '(.+)' dtype mismatch\. expected (\S+), actual (\S+)$"),
        lambda m: f"the dtype of {_name(m[1])} changed from {m[2]} to {m[3]}",
    ),
    (
        re.compile(r"^tensor '(.+)' requires_grad mismatch\. expected requires_grad=(\S+)$"),
        lambda m: (
            f"{_name(m[1])} requires "
            + ("gradients now, and did not" if m[2] in {"0", "False"} else "no gradients any more")
        ),
    ),
    (
        re.compile(r"^tensor '(.+)' dispatch key set mismatch\. .*$"),
        lambda m: f"{_name(m[1])} is on another device, or gradients were turned on or off",
    ),
    (
        re.compile(r"^___check_type_id\((.+?), (?:\d+|\.\.\.)\)(?:, type=<class '(.+)'>)?.*$"),
        lambda m: f"{_name(m[1])} is of another class" + (f" than `{m[2]}`" if m[2] else ""),
    ),
    (
        re.compile(r"^___check_obj_id\((.+?), (?:\d+|\.\.\.).*$"),
        lambda m: f"{_name(m[1])} is a different object",
    ),
    (
        re.compile(r"^(?:GLOBAL_STATE changed:?|___check_global_state\(\))(.*)$"),
        lambda m: f"a global state of torch changed: {_states(m[1])}",
    ),
    (
        re.compile(r"^not (.+)$"),
        lambda m: f"{_name(m[1])} was false and is true",
    ),
    (
        re.compile(r"^2 <= (.+)\.size\(\)\[(\d+)\]$"),
        lambda m: f"size {m[2]} of {_name(m[1])} is 0 or 1 now, which torch compiles apart from other sizes",
    ),
    (
        re.compile(r"^len\((.+)\) != 0$"),
        lambda m: f"{_name(m[1])} is empty now, and was not",
    ),
    (
        re.compile(r"^(\S.*) is None$"),
        lambda m: f"{_name(m[1])} was None and is not any more",
    ),
    (
        re.compile(r"^(\S.*) is not None$"),
        lambda m: f"{_name(m[1])} is None now, and was not",
    ),
    (
        re.compile(r"^(\S.*? (?:[<>]=?|!=) .+)$"),
        lambda m: f"{_name(m[1])} is not true any more",
    ),
    (
        re.compile(r"^(\S.*?) == \.\.\.$"),
        lambda m: (
            f"{_name(m[1])} is not what it was: a Python value that changes from call to call is compiled anew for each"
        ),
    ),
    (
        re.compile(r"^(\S.*?) == (.+)$"),
        lambda m: (
            f"{_name(m[1])} was {m[2]} and is not any more: a Python value that changes from call to call is compiled "
            "anew for each"
        ),
    ),
)


def reasons(texts: Iterable[str]) -> tuple[Reason, ...]:
    """The guards that failed, the most frequent first. A text holds a line for each, or is a JSON list of them."""
    counted: Counter[str] = Counter()
    for text in texts:
        counted.update(set(_guards(text)))
    return tuple(Reason(guard, in_words(guard), count) for guard, count in counted.most_common())


def in_words(guard: str) -> str:
    """What a guard that failed means; the guard itself where its form is not known."""
    for pattern, words in _FORMS:
        match = pattern.match(guard)
        if match is not None:
            return words(match)
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
