"""Functions that only compute: they call operations of torch, and write nothing but their own names.

Such a function changes none of its arguments and nothing outside, so it does the same whoever calls it, and when.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from graphmend_codemod.analysis import aliasing, torch_api
from graphmend_codemod.project.summary.spelling import dotted

COMPUTES = "only torch"
"""How a summary notes that a function only computes, as far as `torch` means torch where it stands."""
_LONGEST = 40
OPERATIONS = (
    (aliasing.FRESH | aliasing.VIEWS | aliasing.PYTHON_RESULTS)
    - aliasing.RANDOM
    - torch_api.AUTOCAST
    - aliasing.CONTAINER_METHODS
    - frozenset("fill to cpu cuda float half double bfloat16 type requires_grad_ is_grad_enabled".split())
)
"""Functions of torch and methods of tensors that do nothing but return something, under autocast the same.

Without those that modules, lists or arrays have as well, which they change.
"""
_STATEMENTS = (ast.Assign, ast.If, ast.Return)
_EXPRESSIONS = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.IfExp, ast.List, ast.Name, ast.Slice,
    ast.Starred, ast.Subscript, ast.Tuple, ast.UnaryOp, ast.expr_context, ast.keyword, ast.operator, ast.unaryop,
    ast.boolop, ast.cmpop,
)  # fmt: skip
_KNOWN = frozenset(
    kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, (*_STATEMENTS, *_EXPRESSIONS))
)


MARKS_CONSTANT = "marks a constant"
"""How a summary notes a decorator that does what `torch.compiler.assume_constant_result` does."""
MAKES_OPERATOR = "makes an operator"
"""How a summary notes a decorator that registers an operator and returns what calls it."""


def decorates(node: ast.FunctionDef | ast.AsyncFunctionDef, *, operators: bool) -> Iterator[str]:
    """What a decorator makes of a function; `operators` is true where the module may register some."""
    if _marks_constant(node):
        yield MARKS_CONSTANT
    if operators and _makes_operator(node):
        yield MAKES_OPERATOR


def _marks_constant(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for a function with `function._dynamo_marked_constant = True`: Dynamo calls what has that, and no more."""
    targets = [each.targets[0] for each in node.body if isinstance(each, ast.Assign)]
    return any(isinstance(each, ast.Attribute) and each.attr == "_dynamo_marked_constant" for each in targets)


def _makes_operator(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for a decorator that gives an operator for what it decorates: Dynamo does not look into that.

    A decorator that registers the function and returns it unchanged is none: Dynamo traces that function.
    """
    registers = any(
        isinstance(part, ast.Attribute)
        and part.attr in _REGISTERS
        and isinstance(part.value, ast.Attribute)
        and part.value.attr == "library"
        for part in ast.walk(node)
    )
    given: set[str] = set()
    for function in (node, *(each for each in node.body if isinstance(each, ast.FunctionDef))) if registers else ():
        given.update(each.arg for each in function.args.args)
        last = function.body[-1]
        if isinstance(last, ast.Return) and isinstance(last.value, ast.Name) and last.value.id in given:
            return False
    return registers


_REGISTERS = frozenset({"define", "custom_op", "triton_op"})


_SCRIPT = "torch.jit.script"
"""TorchScript computes what the text says, and writes no more."""


def only_computes(node: ast.FunctionDef | ast.AsyncFunctionDef, calls: Collection[str], local: Collection[str]) -> bool:
    """True for a short function of known operations and assignments to its own names.

    `calls` is what it calls, and `local` are the names that it binds. Whether `torch` means torch is left open.
    """
    if any(name.rpartition(".")[2] not in OPERATIONS or "." not in name for name in calls):
        return False
    if (node.end_lineno or 0) - node.lineno > _LONGEST or isinstance(node, ast.AsyncFunctionDef):
        return False
    if any(dotted(each) != _SCRIPT for each in node.decorator_list):
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
        elif isinstance(part, ast.Call):
            # Whether it is a method of a tensor or a function of torch is open here; an argument more says too much.
            name = part.func.attr if isinstance(part.func, ast.Attribute) else None
            if not aliasing.of_operator(name, part).pure:
                return False
        elif part.__class__ not in _KNOWN:
            return False
    return True
