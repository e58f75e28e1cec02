"""Which files TorchScript compiles, and what it refuses by the syntax alone: such functions are not given to it.

From `torch/jit/frontend.py` of torch 2.13, which parses a whole function before anything is known of its values.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from graphmend_codemod.analysis.scope import FunctionNode, walk

_SCRIPTS = r"jit\.(?:(?:is_scripting|export|unused|ignore|annotate|annotations|_?script_if_tracing)\b|script\()"
_REFUSED = (
    *(ast.Lambda, ast.NamedExpr, ast.Set, ast.SetComp, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Try, ast.Match),
    *(ast.AsyncFor, ast.AsyncWith),
)
_COMPREHENSIONS = (ast.ListComp, ast.DictComp, ast.GeneratorExp)


@lru_cache(maxsize=4)
def is_scripted(text: str) -> bool:
    """True for a file whose code is written for TorchScript as well, which compiles less Python than runs."""
    return re.search(_SCRIPTS, text) is not None


def is_refused(function: FunctionNode) -> bool:
    """True for a function with a part that TorchScript refuses wherever it stands, or with `*args` and the like."""
    args = function.args
    if args.vararg or args.kwarg or any(each is not None for each in args.kw_defaults):
        return True
    return any(_is_refused(part) for statement in function.body for part in walk(statement))


def _is_refused(node: ast.AST) -> bool:
    if isinstance(node, _COMPREHENSIONS):
        return len(node.generators) > 1 or bool(node.generators[0].ifs)
    if isinstance(node, ast.Call):
        return any(word.arg is None for word in node.keywords)
    return isinstance(node, _REFUSED) or (isinstance(node, ast.For) and bool(node.orelse))
