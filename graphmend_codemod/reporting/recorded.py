"""Operators of a recorded run: for which calls they hold, in words."""

from __future__ import annotations

import ast

from graphmend_codemod.core.findings import Finding

_LEFT_OUT = ("_are_made(", "not hasattr(")
_OPTIONS = {"_is_like_recorded": 4, "_is_array_like_recorded": 3}


def holds_for(finding: Finding) -> tuple[str, ...]:
    """What the operator of a recorded run asks of a call, the sizes last: `x: torch.float32, 2 dimensions, cpu` and
    `x.shape[1] == 4`. Other calls take the author's path. Empty for all other fixes.
    """
    asked = finding.edit.recorded if finding.edit is not None else ()
    kept = [each for each in asked if not each.startswith(_LEFT_OUT)]
    return tuple(_words(each) for each in sorted(kept, key=lambda each: ".shape[" in each))


def _words(condition: str) -> str:
    try:
        called = ast.parse(condition, mode="eval").body
    except SyntaxError:
        return condition
    if isinstance(called, ast.Call) and isinstance(called.func, ast.Name):
        given = [ast.unparse(each) for each in called.args]
        if len(given) == _OPTIONS.get(called.func.id):
            kind = [f"{given[2]} dimension{'' if given[2] == '1' else 's'}"]
            if given[1].startswith("torch."):  # where it varied, another condition names those that there were
                kind.insert(0, given[1])
            device = [str(ast.literal_eval(called.args[3]))] if len(given) > 3 else ["an array of NumPy"]
            return f"{given[0]}: {', '.join([*kind, *device])}"
        if called.func.id == "_is_apart":
            read, layers = (str(ast.literal_eval(each)) for each in called.args[1:3])
            return f"layers in {', '.join(layers.split())} of {given[0]} share nothing with {', '.join(read.split())}"
    if isinstance(called, ast.Compare) and isinstance(called.left, ast.Call):
        left = called.left
        if isinstance(left.func, ast.Name) and left.func.id == "_elements_of":
            return f"{ast.unparse(left.args[0])} has {ast.unparse(called.comparators[0])} parameters"
    return condition
