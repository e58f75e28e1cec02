"""What a function is given: the values of its parameters, as far as annotations, defaults and uses tell."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend_codemod.analysis import annotated
from graphmend_codemod.analysis.interpreter import Env, Evaluator
from graphmend_codemod.analysis.likely_tensors import guessed_parameters
from graphmend_codemod.analysis.patterns import is_none
from graphmend_codemod.analysis.scope import FunctionNode, Scope, defaults_of, parameters
from graphmend_codemod.analysis.values import UNKNOWN, ValueKind, python
from graphmend_codemod.project.index.type_aliases import type_alias


def given_values(scope: Scope, evaluator: Evaluator, likely: Mapping[str, bool]) -> Env:
    """The parameters of a function. `likely` are names used as only tensors are."""
    function = scope.node
    env: Env = {}
    absent = _absent_by_default(function)
    for argument in parameters(function):
        text = "" if argument.annotation is None else annotation_text(evaluator, argument.annotation)
        value = annotated.value_of(text or None, evaluator.names)
        value = evaluator.hinted(argument.arg, value)
        optional = argument.arg in absent and value.kind is ValueKind.TENSOR
        env[argument.arg] = value._replace(optional=True) if optional else value
    for name, optional in guessed_parameters(function, likely).items():
        if env[name] == UNKNOWN:
            env[name] = evaluator.names.tensor(optional=optional, hint=True)
    for starred in (function.args.vararg, function.args.kwarg):
        if starred is not None:
            env[starred.arg] = python()
    return env


def annotation_text(evaluator: Evaluator, node: ast.expr) -> str:
    """Source text of an annotation with its names resolved; a string annotation is read as source."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError):
            return ""
    if isinstance(node, ast.Subscript):
        return f"{annotation_text(evaluator, node.value)}[{annotation_text(evaluator, node.slice)}]"
    if isinstance(node, ast.Tuple):
        return ", ".join(annotation_text(evaluator, element) for element in node.elts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return f"{annotation_text(evaluator, node.left)} | {annotation_text(evaluator, node.right)}"
    if isinstance(node, (ast.Name, ast.Attribute)):
        meant = evaluator.resolve(node, {})
        return ast.unparse(node) if meant is None else type_alias(evaluator.scope.index, meant) or meant
    return ast.unparse(node)


def _absent_by_default(function: FunctionNode) -> set[str]:
    """The parameters that are None where nobody gives them, whatever their annotation says."""
    return {each.arg for each, default in defaults_of(function) if is_none(default)}
