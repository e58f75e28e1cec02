"""Calls of opt_einsum and NumPy that torch has an equivalent of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphmend_codemod.analysis.scope import dotted, walk
from graphmend_codemod.analysis.speculation import reads_loudly, short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs import traceable_texts as texts
from graphmend_codemod.rules.proofs.twin import Twin, called

_EQUATION = re.compile(r"[A-Za-z., ]+(?:->[A-Za-z. ]*)?")


def contracted(site: Site, statement: ast.stmt, call: ast.Call) -> Twin | None:
    """The same sums of products by `torch.einsum`; of one operand, which may come back as a view, nothing is known."""
    equation = call.args[0] if call.args else None
    if not isinstance(equation, ast.Constant) or not isinstance(equation.value, str):
        raise NotProven("its equation is no literal; manually call `torch.einsum`")
    if not _EQUATION.fullmatch(equation.value) or call.keywords:
        raise NotProven("`torch.einsum` takes equations of letters, and no other arguments; manually call it")
    if len(call.args) < 3 or any(isinstance(each, ast.Starred) for each in call.args):
        raise NotProven("it may have one operand, and return a view of it; manually call `torch.einsum`")
    return called("_contract_while_tracing", texts.CONTRACT)(site, statement, call)


_MADE_BY = frozenset({"torch.tensor", "torch.empty", "torch.zeros", "torch.ones"})
_EXACT = frozenset({"min", "max", "eps", "tiny", "smallest_normal"})
"""What a limit is called for which NumPy has no other number than torch, as `resolution` is one."""


def limits(site: Site, statement: ast.stmt, call: ast.Call) -> Twin | None:
    """`torch.finfo(x.dtype)` for `np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype)`."""
    asked = call.args[0] if len(call.args) == 1 and not call.keywords else None
    array = asked.value if isinstance(asked, ast.Attribute) and asked.attr == "dtype" else None
    if not isinstance(array, ast.Call) or not isinstance(array.func, ast.Attribute) or array.func.attr != "numpy":
        return None
    made = array.func.value
    if not isinstance(made, ast.Call) or site.resolve(made.func) not in _MADE_BY or array.args or array.keywords:
        raise NotProven(f"`{short(made)}` may not be on the CPU; manually ask `torch.finfo` for its dtype")
    words = {word.arg: word.value for word in made.keywords}
    dtype = words.get("dtype")
    known = len(words) == 1 and all(
        isinstance(part, (ast.Constant, ast.Tuple, ast.Load)) for part in _within(made.args)
    )
    if dtype is None or dotted(dtype) is None or not known or reads_loudly(site.evaluator, site.text(dtype)):
        raise NotProven(f"`{short(made)}` has no dtype that a name tells; manually ask `torch.finfo` for one")
    number = _plain_number(site, statement, call)
    if number is None:
        raise NotProven("its result may be used as a number of NumPy; manually write `float(torch.finfo(dtype).min)`")
    name = site.resolve(call.func) or ""
    kinds = ("float16", "float32", "float64") if name == "numpy.finfo" else ("int8", "int16", "int32", "int64")
    spelled, torch = site.text(dtype), site.torch
    taken = f"{spelled} in ({', '.join(f'{torch}.{kind}' for kind in kinds)})"
    limit = f"{torch}.{name.partition('.')[2]}({spelled}).{number.args[0].attr}"  # type: ignore[attr-defined]
    return Twin(call, number, f"{site.text(number.func)}({limit})", (site.compiling, taken), raises=False)


def _within(nodes: list[ast.expr]) -> Iterator[ast.AST]:
    return (part for each in nodes for part in walk(each))


def _plain_number(site: Site, statement: ast.stmt, call: ast.Call) -> ast.Call | None:
    """`float(call.min)`, which is the same number of Python for NumPy and torch."""
    for part in walk(statement):
        if isinstance(part, ast.Call) and site.resolve(part.func) in ("builtins.float", "builtins.int") and part.args:
            limit = part.args[0]
            if isinstance(limit, ast.Attribute) and limit.value is call and limit.attr in _EXACT:
                return part
    return None
