"""What a recorded run knows of values, and which of them an operator can take and give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.proofs.outlining.recorded.moments import ARRAY, TENSOR, Fact, Observation
from graphmend_codemod.rules.proofs.outlining.recorded.sizes import Given

_PLAIN = frozenset({"int", "float", "str", "constant", "dtype", "device"})
_IDENTITY = {TENSOR: 6, "other tensor": 6, ARRAY: 4, "list": 2, "object": 2}
"""Where facts have the number of the object."""
_CONTAINERS = ("builtins.dict", "builtins.set", "builtins.list", "builtins.tuple", "collections.")
"""Objects of which Dynamo makes others where they become constants of the graph: it refuses them, or takes a copy."""
_FUNCTIONS = frozenset({"builtins.function", "builtins.method", "functools.partial"})
CHANGING = frozenset({ARRAY, "list", "object"})
MEMORY = {TENSOR: 5, ARRAY: 3}
"""Where facts have the number of the memory."""


class KeptObject(NotProven):
    """A result, or with `before` something that is read, is an object that a graph cannot hold: the statements
    before or behind may take it in."""

    def __init__(self, reason: str, *, before: bool = False) -> None:
        super().__init__(reason)
        self.before = before


def tensors_of(fact: Fact) -> Iterator[Fact]:
    """The facts of the tensors and arrays in a result, in order."""
    if fact[0] in ("list", "tuple"):
        for each in fact[1]:
            yield from tensors_of(each)
    elif fact[0] in (TENSOR, ARRAY):
        yield fact


def check_settled(given: Given) -> None:
    """NotProven for what was of several kinds, and for a text that is none of the words that a trace keeps."""
    kinds = {each[0] for each in given.facts}
    if len(kinds) > 1:
        raise NotProven(f"`{given.text}` was {' and '.join(sorted(kinds))} in the recorded run")
    if any(leaf == ["str"] for fact in given.facts for leaf in _leaves(fact)):
        raise NotProven(f"`{given.text}` was a text, of which the trace keeps nothing")


def check_given(given: Given) -> None:
    check_settled(given)
    if given.kind in ("list", "tuple"):
        lengths = {len(each[1]) for each in given.facts}
        inner = {one[0] for each in given.facts for one in each[1]}
        if len(lengths) > 1 or (inner - {TENSOR} and inner - _PLAIN):
            raise KeptObject(f"`{given.text}` is a {given.kind} that an operator cannot take", before=True)
    elif given.kind == "object" and any(str(each[1]).startswith("numpy.") for each in given.facts):
        # Dynamo would hand the operator the value of the first call.
        raise KeptObject(f"`{given.text}` was a number of NumPy's", before=True)
    elif given.kind == "object" and any(str(each[1]).startswith(_CONTAINERS) for each in given.facts):
        raise KeptObject(f"`{given.text}` is a container that an operator cannot take", before=True)
    elif given.kind == "other tensor":
        raise NotProven(f"`{given.text}` is a tensor of a class or layout of its own")


def check_result(result: Given, shown: str, seen: Sequence[Observation]) -> None:
    forms = {_form(each) for each in result.facts}
    if len(forms) > 1:
        # The statements that follow may join a list of any length to one tensor.
        refused = KeptObject if all(each[0] in ("list", "tuple") for each in result.facts) else NotProven
        raise refused(f"{shown} was {' and '.join(sorted(forms))} in the recorded run")
    for leaf in (leaf for fact in result.facts for leaf in _leaves(fact)):
        if leaf[0] not in (TENSOR, ARRAY) and leaf != ["constant", None]:
            kind = leaf[1] if leaf[0] == "object" else f"a value of Python ({leaf[0]})"
            raise KeptObject(f"{shown} was {kind}, which the operator cannot return")
    for fact, each in zip(result.facts, seen, strict=True):
        memory = {one[MEMORY[one[0]]] for held in each.before.held.values() for one in tensors_of(held)}
        if any(one[MEMORY[one[0]]] in memory - {-1} for one in tensors_of(fact)):
            raise KeptObject(f"{shown} shared memory with what went in, in the recorded run")


def identity_of(fact: Fact) -> tuple[object, ...]:
    """The same for facts of one and the same object, by whatever name; for what nothing changes, the fact itself."""
    place = _IDENTITY.get(fact[0])
    return (fact[0], fact[place]) if place is not None else (fact[0], str(fact))


def is_new_each_time(given: Given) -> bool:
    """True for an object that no two calls had: a graph with an operator that reads one is for that object alone."""
    facts = given.facts if given.kind == "object" else ()
    plain = [each for each in facts if each[7] is None and each[1] not in _FUNCTIONS]
    lasting = {each[8] for each in plain if len(each) > 8}  # a trace of before has no such numbers
    return -1 not in lasting and len(lasting) == len(facts) > 1


def is_one_function(given: Given, seen: Sequence[Observation]) -> bool:
    """True for a function that was the same one in several calls of the function around: none of them made it."""
    functions = all(fact[0] == "object" and fact[1] == "builtins.function" for fact in given.facts)
    lasting = {fact[8] if len(fact) > 8 else -1 for fact in given.facts}
    return functions and len(lasting) == 1 and -1 not in lasting and len({id(each.entry) for each in seen}) > 1


def is_empty(fact: Fact | None) -> bool:
    """True for a dictionary without entries; False for one of a trace that does not tell."""
    return fact is not None and fact[:2] == ["object", "builtins.dict"] and fact[9:] == [0]


def _leaves(fact: Fact) -> Iterator[Fact]:
    for each in fact[1] if fact[0] in ("list", "tuple") else ():
        yield from _leaves(each)
    if fact[0] not in ("list", "tuple"):
        yield fact


def _form(fact: Fact) -> str:
    """The kind of a value, in words: a list of two tensors is of another kind than one of three."""
    if fact[0] in ("list", "tuple"):
        return f"{fact[0]} of {', '.join(map(_form, fact[1]))}"
    if fact[0] in (TENSOR, ARRAY):
        return f"{fact[0]} of {len(fact[2])} dimensions"
    return "None" if fact == ["constant", None] else str(fact[0])
