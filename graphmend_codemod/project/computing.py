"""Functions that only compute: they call operations of torch, and write nothing but their own names.

Such a function changes none of its arguments and nothing outside, so it does the same whoever calls it, and when.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

COMPUTES = "only torch"
"""How a summary notes that a function only computes, as far as `torch` means torch where it stands."""
_LONGEST = 40
OPERATIONS = frozenset(
    """abs all any arange argmax argmin bool bucketize cat clamp clone concat concatenate cumsum detach diff div eq
    expand expand_as eye flatten flip full full_like ge gather gt int isfinite isin isinf isnan le linspace
    logical_and logical_not logical_or long lt masked_fill max maximum mean min minimum mul ne new_full new_ones
    new_tensor new_zeros nonzero numel ones ones_like permute repeat reshape roll searchsorted size split squeeze
    stack sub sum tensor tile topk transpose tril triu type_as unsqueeze view where zeros zeros_like""".split()
)
"""Functions of torch and methods of tensors that make new tensors, or views, and do nothing else."""
_STATEMENTS = (ast.Assign, ast.If, ast.Return)
_EXPRESSIONS = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.IfExp, ast.List, ast.Name, ast.Slice,
    ast.Starred, ast.Subscript, ast.Tuple, ast.UnaryOp, ast.expr_context, ast.keyword, ast.operator, ast.unaryop,
    ast.boolop, ast.cmpop,
)  # fmt: skip
_KNOWN = frozenset(
    kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, (*_STATEMENTS, *_EXPRESSIONS))
)


def only_computes(node: ast.FunctionDef | ast.AsyncFunctionDef, calls: Collection[str], local: Collection[str]) -> bool:
    """True for a short function of known operations and assignments to its own names.

    `calls` is what it calls, and `local` are the names that it binds. Whether `torch` means torch is left open.
    """
    if not calls or any(name.rpartition(".")[2] not in OPERATIONS or "." not in name for name in calls):
        return False
    if (node.end_lineno or 0) - node.lineno > _LONGEST or node.decorator_list or isinstance(node, ast.AsyncFunctionDef):
        return False
    own = {*local, "torch", "?"}
    if "torch" in local or any(name.partition(".")[0] not in own for name in calls):
        return False
    todo: list[ast.AST] = [*node.body]
    if ast.get_docstring(node, clean=False) is not None:
        todo.pop(0)
    return all(map(_only_computes, todo))


def _only_computes(statement: ast.AST) -> bool:
    for part in ast.walk(statement):
        if isinstance(part, ast.Assign):
            if not all(isinstance(target, ast.Name) for target in part.targets):
                return False
        elif isinstance(part, ast.keyword):
            if part.arg is None or part.arg in {"out", "inplace"}:
                return False
        elif part.__class__ not in _KNOWN:
            return False
    return True
