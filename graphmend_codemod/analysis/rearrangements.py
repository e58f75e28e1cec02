"""The functions of einops: views and copies that follow a pattern, `rearrange(x, "b c h w -> b (h w) c")`.

Source: https://einops.rocks/api/. They write into nothing and draw nothing; what they return may be memory of what they
are given, and has its dtype.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.analysis.aliasing import Effect
from graphmend_codemod.analysis.argument_limits import is_size
from graphmend_codemod.analysis.hazards import Hazards, short
from graphmend_codemod.analysis.shape_needs import ShapeNeed
from graphmend_codemod.analysis.values import SCALAR, UNKNOWN, Value, ValueKind

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Env, Evaluator

FUNCTIONS = frozenset({"einops.rearrange", "einops.repeat", "einops.reduce", "einops.einsum"})
_MOVES = frozenset({"einops.rearrange", "einops.repeat"})
_ALL = "..."
_TOKEN = re.compile(r"\s+|(?P<axis>[a-z][a-z0-9_]*(?<!_)|1|\.\.\.)|(?P<group>[()])", re.IGNORECASE)


class _Pattern(NamedTuple):
    """The axes of both sides, in order. `grouped` is whether the left side has parentheses."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    grouped: bool


def effect_of(qualified: str, call: ast.Call) -> Effect:
    """What a call of one of `FUNCTIONS` does with memory: its result may be that of the first tensor, or of any."""
    given = call.args[:-1] if qualified == "einops.einsum" else call.args[:1]
    words = [word.value for word in call.keywords if word.arg == "tensor"]
    return Effect(shares=(*given, *words))


def value_of(evaluator: Evaluator, qualified: str, node: ast.Call, env: Env) -> Value:
    """What a call of one of `FUNCTIONS` gives: a tensor where it is given one, which is a hint where that is one."""
    base = evaluator.value(node.args[0], env) if node.args else UNKNOWN
    if base.kind is not ValueKind.TENSOR or base.optional:
        return UNKNOWN
    kept = base.dtype if qualified in _MOVES else None
    return evaluator.names.tensor(kept, grad=base.grad, hint=base.hint)


def hazards_of(evaluator: Evaluator, qualified: str, node: ast.Call, env: Env) -> Hazards:
    """What is against `rearrange` and `repeat` where eager mode skips them, beside what is against their arguments."""
    text = short(node)
    base = evaluator.value(node.args[0], env) if len(node.args) == 2 else UNKNOWN
    if qualified not in _MOVES or not base.is_tensor:
        return Hazards(impure=f"`{text}` may be expensive")
    written = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
    pattern = _parsed(written) if isinstance(written, str) else None
    words = {word.arg: word.value for word in node.keywords}
    needs = None if pattern is None else _needs(base, pattern)
    if pattern is None or needs is None or not _fits(pattern, words.keys(), repeats=qualified == "einops.repeat"):
        return Hazards(raises=f"`{text}` may raise for some shapes")
    if not all(is_size(evaluator, each, env) for each in words.values()):
        return Hazards(raises=f"`{text}` may raise for some arguments")
    return Hazards(needs_shapes=needs)


def _fits(pattern: _Pattern, given: Collection[str | None], *, repeats: bool) -> bool:
    """True where einops takes the pattern: each axis once on each side, and sizes for the new ones alone."""
    left, right = [*pattern.left], [each for each in pattern.right if each != "1"]
    new = {*right} - {*left}
    once = len({*right}) == len(right) and len({*left}) == len(left)
    return once and {*left} <= {*right} and new == {*given} and (repeats or not new)


def _needs(base: Value, pattern: _Pattern) -> frozenset[ShapeNeed] | None:
    if pattern.grouped or "1" in pattern.left or base.shape is None or base.shape == SCALAR:
        return None  # sizes would have to be divided
    rest = _ALL in pattern.left
    return frozenset({ShapeNeed(base.shape, f"{{0}}.dim() {'>=' if rest else '=='} {len(pattern.left) - rest}")})


@lru_cache(maxsize=256)
def _parsed(text: str) -> _Pattern | None:
    """A pattern of axes, `...` and parentheses; None for any other text."""
    sides = text.split("->")
    if len(sides) != 2:
        return None
    found: list[tuple[tuple[str, ...], bool]] = []
    for side in sides:
        axes, depth, position = [], 0, 0
        grouped = False
        while position < len(side):
            match = _TOKEN.match(side, position)
            if match is None:
                return None
            position = match.end()
            if match["group"]:
                depth += 1 if match["group"] == "(" else -1
                grouped = True
                if depth not in {0, 1}:
                    return None
            elif match["axis"]:
                if match["axis"] == _ALL and depth:
                    return None
                axes.append(match["axis"])
        if depth:
            return None
        found.append((tuple(axes), grouped))
    return _Pattern(found[0][0], found[1][0], found[0][1])
