"""What a call in a function does with memory, where the dataflow says what its names hold."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import aliasing, rearrangements, torch_api
from graphmend_codemod.analysis.aliasing import Effect
from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.values import ValueKind

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Env, Evaluator


def effect_of(evaluator: Evaluator, call: ast.Call, env: Env) -> Effect:
    """What `call` does where names hold what `env` says.

    A layer is taken for what its constructor makes it, which is a hint: `nn.Identity` may have taken its place.
    """
    qualified = evaluator.resolve(call.func, env)
    name = torch_api.torch_function(qualified)
    if name is not None:
        return aliasing.of_operator(name, call)
    if qualified is not None and qualified.startswith("builtins."):
        return aliasing.of_builtin(qualified.removeprefix("builtins."), call)
    if qualified is not None and qualified.startswith("math."):
        return Effect()
    if qualified in rearrangements.FUNCTIONS:
        return rearrangements.effect_of(qualified, call)
    if not isinstance(call.func, ast.Attribute):
        return aliasing.unknown(call)
    receiver = call.func.value
    if evaluator.value(receiver, env).kind is ValueKind.TENSOR:
        return aliasing.of_operator(call.func.attr, call, receiver)
    if qualified is None and is_name(receiver, evaluator.scope.self_name):
        return _of_attribute(evaluator, call, call.func.attr, env)
    return aliasing.unknown(call, receiver)


def _of_attribute(evaluator: Evaluator, call: ast.Call, name: str, env: Env) -> Effect:
    fact = None if f"self.{name}" in env else evaluator.scope.attribute(name)
    layer = torch_api.torch_module_class(fact.callee) if fact is not None else None
    return aliasing.of_layer(layer, _construction(fact.text) if fact is not None else None, call)


@lru_cache(maxsize=512)
def _construction(text: str) -> ast.Call | None:
    """The call of a constructor that `text` spells."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    return node if isinstance(node, ast.Call) else None
