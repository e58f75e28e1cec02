"""Operators that ask how many rows there are, where a graph carries that number as a symbol without a value.

Measured on torch 2.13 with rows that a mask chooses. Dynamo breaks the graph at the first kind whatever runs it. At the
second it traces on, and the backend ends compilation with an error as soon as it makes the gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import all_given, last_name, listed, names_bound, owner_of
from graphmend_codemod.analysis.scope import FunctionNode, children, dotted, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.symbols.rows_in_front import RowsInFront, joins_columns

_BREAK = torch_api.name_set(
    """logsumexp batch_norm instance_norm roll cdist diff chunk cummax cummin split tensor_split cov corrcoef trapezoid
    max_pool1d max_pool2d adaptive_avg_pool1d adaptive_avg_pool2d"""
)
_ALONG = torch_api.name_set("diff chunk split tensor_split trapezoid")
"""Those of them that ask only along the dimension that they are given, which is the first where they are given none."""
_FAIL = torch_api.name_set("cumsum cumprod logcumsumexp prod svd svdvals pinv")
_FAIL_ANYWAY = torch_api.name_set("diagonal multi_head_attention_forward trace")
"""Those that Inductor cannot compile. Attention over rows of unknown number gave another result, too."""
_ATTENDS = frozenset(
    """MultiheadAttention Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
    TransformerEncoderLayer""".split()
)
"""Layers of torch that call one of them."""
_FAIL_WHOLE = torch_api.name_set("std var std_mean var_mean squeeze")
"""Those of them that do so where they are given no dimension."""
_REDUCE = torch_api.name_set("sum mean max min amax amin any all norm prod median argmax argmin std var")
"""What gives one element where it is given no dimension."""
_NORMALIZES = torch_api.name_set("softmax log_softmax softmin cross_entropy")
_MULTIPLIES = torch_api.name_set("matmul mm")
_JOINS = torch_api.name_set("cat concat concatenate hstack vstack")
_FILLED = torch_api.name_set(
    "arange empty full linspace new_empty new_full new_ones new_zeros ones ones_like rand randn zeros zeros_like"
)
_WEIGHTED = frozenset({"lerp", "lerp_"})
"""Of which torch has a form for weights below a half and one for others."""
_OF_A_NUMBER = frozenset({"celu", "celu_", "pow", "xlogy"})
_FACTORS = frozenset({"alpha", "beta"})
_REPEATS = torch_api.name_set("repeat tile")
"""What asks for the value of a number that it is given, to make the gradient."""
_SETTLE = torch_api.name_set(
    "item tolist numel size len dim index_add index_copy scatter_add scatter new_zeros new_ones new_full"
)


_SIZED = torch_api.name_set(
    """arange empty expand full linspace narrow new_empty new_full new_ones new_zeros ones rand randn repeat reshape
    resize tile unfold view zeros"""
)
"""What takes a number for a size."""
_SHAPED = torch_api.name_set("reshape view expand unflatten")
"""What takes -1 for a size."""
_COUNTS = frozenset({"len", "nelement", "numel", "size"})
_OF_NUMBERS = frozenset({"int", "min", "max", "abs", "round", "item"})


def unanswered(
    site: Site, nodes: Collection[ast.expr], numbers: Collection[ast.expr] = ()
) -> tuple[str | None, list[str]]:
    """Why what these expressions choose cannot go where it goes in the function, or what has to hold for it.

    Where a gradient alone would ask how many rows there are, what they are chosen from may need none. Of what is cut
    to one of the `numbers` no name says that, nor of rows that went through a layer with weights, so gradients have to
    be off.
    """
    asks = _asked_of(site, nodes)
    if asks is None:
        cut = _asked_of(site, (), numbers) if numbers else None
        if cut is not None and not cut.gradient:
            return cut.why, []
        return None, [] if cut is None else [site.gradients_off]
    bases = [_chosen_from(site, node) for node in nodes]
    if not asks.gradient or None in bases:
        return asks.why, []
    if _meets_others(site, rows_of(site.evaluator.scope.node, nodes)):
        return None, [site.gradients_off]
    names = dict.fromkeys(name for base in bases for name in base or ())
    return None, [f"not ({site.torch}.is_grad_enabled() and {name}.requires_grad)" for name in names]


def as_shape(site: Site, statement: ast.stmt, lists: Collection[ast.expr]) -> str | None:
    """Why lists of numbers that the data tells cannot be symbols: `x.reshape(lists)`, where -1 stands for the rest."""
    nodes = {id(node) for node in lists}
    names = names_bound(statement) if nodes else frozenset()
    for call in (part for part in walk_scope(site.evaluator.scope.node) if nodes and isinstance(part, ast.Call)):
        given = [each.value if isinstance(each, ast.Starred) else each for each in call.args]
        whole = any(id(each) in nodes or (isinstance(each, ast.Name) and each.id in names) for each in given)
        if last_name(call.func) in _SHAPED and whole:
            return f"a size in `{short(call)}` may be -1, and a symbol for a size is none below 0"
    return None


def sizes_in(scope: FunctionNode, rows: Rows) -> list[ast.expr]:
    """`len(x)`, `x.numel()`, `x.size(0)` and `x.shape` in a function, of what has so many rows."""
    found: list[ast.expr] = []
    for part in walk_scope(scope):
        if isinstance(part, ast.Attribute) and part.attr == "shape" and rows.reach(part.value):
            found.append(part)
        elif isinstance(part, ast.Call) and last_name(part.func) in _COUNTS:
            owner = owner_of(part)
            if any(map(rows.reach, [owner] if owner is not None else part.args[:1])):
                found.append(part)
    return found


def lists_of(scope: ast.AST, rows: Rows) -> list[ast.Call]:
    """`rows.tolist()` in a function."""
    calls = [part for part in walk_scope(scope) if isinstance(part, ast.Call) and last_name(part.func) == "tolist"]
    return [each for each in calls if isinstance(each.func, ast.Attribute) and rows.reach(each.func.value)]


def why_listed(lists: Collection[ast.Call]) -> str | None:
    """Why rows of unknown number are not listed: torch 2.13 does not break the graph there, but gives up."""
    found = next((f"`{short(each)}`" for each in lists), None)
    return None if found is None else f"{found} asks how many there are, and torch.compile ends with an error there"


def rows_of(
    scope: FunctionNode, nodes: Collection[ast.expr], numbers: Collection[ast.expr] = (), names: Collection[str] = ()
) -> Rows:
    """What has as many rows in a function as these expressions choose, or as some of its names have."""
    rows = Rows({id(node) for node in nodes}, {id(node) for node in numbers})
    rows.names |= {*names}
    return _spread(scope, rows)


def of_any_dtype(scope: FunctionNode, rows: Rows) -> Rows:
    """The same, and what is compared or counted: `torch.arange(n) < lengths`, through which no gradient flows."""
    return _spread(scope, rows.of_any_dtype())


def _spread(scope: FunctionNode, rows: Rows) -> Rows:
    statements = [part for part in walk_scope(scope) if isinstance(part, (ast.Assign, ast.AugAssign))]
    for each in sorted(statements, key=lambda part: (part.lineno, part.col_offset)):
        if rows.reach(each.value):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            rows.names |= names_bound(each) | {text for target in targets if (text := dotted(target)) is not None}
        elif rows.is_number(each.value):
            rows.numbers |= names_bound(each)
    return rows


def _chosen_from(site: Site, node: ast.expr) -> list[str] | None:
    """The tensors that `x.view(-1)[mask]` and `torch.masked_select(x, mask)` choose from; None if one has no name."""
    given = node.args[:1] if isinstance(node, ast.Call) else [getattr(node, "value", node)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and site.resolve(node.func) is None:
        given = [node.func.value]
    names = [part for each in given for part in walk(each) if isinstance(part, ast.Name)]
    values = [(part.id, site.value(part)) for part in names if not site.value(part).is_python]
    return [name for name, _ in values] if values and all(value.is_tensor for _, value in values) else None


def _meets_others(site: Site, rows: Rows) -> bool:
    """True where the rows meet what may need a gradient whatever they were chosen from: a weight, a layer."""
    for part in walk_scope(site.evaluator.scope.node):
        if isinstance(part, ast.BinOp):
            operands = [part.left, part.right]
        elif isinstance(part, ast.Call):
            owner = owner_of(part)
            called = torch_api.torch_function(site.resolve(part.func))
            is_method = owner is not None and rows.reach(owner)
            operands = [*([owner] if is_method and owner is not None else []), *all_given(part)]
            if called is None and not is_method and any(map(rows.reach, operands)):
                return True
        else:
            continue
        joined = [each for operand in operands for each in listed(operand)]
        others = [each for each in joined if not rows.reach(each)]
        if len(others) < len(joined) and not all(_needs_none(site, each) for each in others):
            return True
    return False


def _needs_none(site: Site, node: ast.expr) -> bool:
    """True for what no gradient is made of: numbers and sizes, and tensors of integers."""
    value = site.value(node)
    return value.is_python or (value.dtype or "").startswith(("torch.int", "torch.uint", "torch.bool", "bool:"))


class _Asks(NamedTuple):
    """Why rows cannot go where they go; with `gradient`, where a gradient is made of it alone."""

    why: str
    gradient: bool


def _asked_of(site: Site, nodes: Collection[ast.expr], numbers: Collection[ast.expr] = ()) -> _Asks | None:
    """What asks how many rows these expressions choose, and would not get an answer; None where nothing does."""
    scope = site.evaluator.scope.node
    rows = rows_of(scope, nodes, numbers)
    why = why_listed(lists_of(scope, rows)) or _not_compiled(site, scope, rows)
    if why is not None:
        return _Asks(why, False)
    found = (
        None if site.no_grad else _powers(site, scope, rows) or _normalized(scope, rows) or _joined(site, nodes, rows)
    )
    for call in (part for part in walk_scope(scope) if isinstance(part, ast.Call)):
        name = last_name(call.func)
        owner = call.func.value if isinstance(call.func, ast.Attribute) and site.resolve(call.func) is None else None
        given = [owner, *call.args] if owner is not None else call.args
        if name in _REPEATS and rows.takes_number(given[1:]) and not site.no_grad:
            found = _Asks(f"`{short(call)}` asks how often, and its gradient cannot be compiled", True)
        if not given or not rows.reach(given[0]):
            continue
        if nodes and name in _BREAK and not (name in _ALONG and _along_another(call)):
            return _Asks(f"`{short(call)}` asks how many there are, and the graph breaks there", False)
        whole = name in _FAIL_WHOLE and len(given) == 1 and not call.keywords
        if (name in _FAIL or whole) and not site.no_grad:
            found = _Asks(f"`{short(call)}` asks how many there are, and its gradient cannot be compiled", True)
    return found


def _not_compiled(site: Site, scope: ast.AST, rows: Rows) -> str | None:
    """Why Inductor cannot compile what is done with the rows, such as a layer of torch that pays attention to them."""
    for call in (part for part in walk_scope(scope) if isinstance(part, ast.Call)):
        kind = torch_api.torch_module_class(site.value(call.func).instance_of)
        owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        if (kind in _ATTENDS or last_name(call.func) in _FAIL_ANYWAY) and any(
            map(rows.reach, [*owner, *all_given(call)])
        ):
            return f"`{short(call)}` asks how many there are, and Inductor cannot compile it"
        weights = [each for each in all_given(call) if not site.value(each).is_tensor]
        if last_name(call.func) in _WEIGHTED and rows.takes_number(weights):
            return f"`{short(call)}` asks how large its weight is, which only the data tells"
    return None


def _powers(site: Site, scope: ast.AST, rows: Rows) -> _Asks | None:
    """`x ** n`, `n ** x`, `x.pow(n)` and `torch.add(x, y, alpha=n)`, whose gradient asks for the number."""
    for part in walk_scope(scope):
        power = part if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow) else None
        if power is not None and rows.is_number(power.left) and site.value(power.right).is_tensor:
            return _Asks(f"`{short(power)}` is a power, and its gradient cannot be compiled", True)
        if power is None or not rows.is_number(power.right):
            continue
        if site.value(power.left).is_tensor or not rows.is_number(power.left):  # `x = x ** n` gives `x` the number
            return _Asks(f"`{short(power)}` is a power, and its gradient cannot be compiled", True)
    for part in walk_scope(scope):
        if not isinstance(part, ast.Call):
            continue
        factors = [word.value for word in part.keywords if word.arg in _FACTORS]
        if rows.takes_number(all_given(part) if last_name(part.func) in _OF_A_NUMBER else factors):
            return _Asks(f"the gradient of `{short(part)}` asks for a number that only the data tells", True)
    return None


def _normalized(scope: ast.AST, rows: Rows) -> _Asks | None:
    """`(rows @ rows.t()).softmax(-1)`: Inductor of torch 2.13 takes its result for wider when it makes the gradient."""
    calls = [part for part in walk_scope(scope) if isinstance(part, ast.Call)]
    if not any(len(each) > 1 and all(map(rows.reach, each)) for each in map(_multiplied, walk_scope(scope))):
        return None
    for call in (part for part in calls if last_name(part.func) in _NORMALIZES):
        owner = owner_of(call)
        if any(map(rows.reach, [*([owner] if owner is not None else []), *all_given(call)])):
            return _Asks(f"`{short(call)}` asks how many there are, and its gradient cannot be compiled", True)
    return None


def _multiplied(node: ast.AST) -> list[ast.expr]:
    """What a product of matrices is made of; nothing for anything else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return [node.left, node.right]
    if not isinstance(node, ast.Call) or last_name(node.func) not in _MULTIPLIES:
        return []
    owner = owner_of(node)
    return [owner, *node.args] if owner is not None and len(node.args) == 1 else node.args


def _joined(site: Site, nodes: Collection[ast.expr], rows: Rows) -> _Asks | None:
    """`torch.cat([self.layer(x), rows])`.

    Where it makes a gradient, Inductor of torch 2.13 has the layer write into the joined tensor, and makes that before
    it knows how many rows there are. New tensors are filled where they are joined, integers have no gradient, and what
    is joined to rows as more columns (`dim=1`) has as many rows itself.
    """
    scope = site.evaluator.scope.node
    for call in (part for part in walk_scope(scope) if isinstance(part, ast.Call)):
        if last_name(call.func) not in _JOINS or not call.args:
            continue
        parts = listed(call.args[0])
        others = [each for each in parts if not rows.reach(each) and not (_is_filled(each) or _needs_none(site, each))]
        if not others or len(others) == len(parts) or not any(map(rows.reach, parts)):
            continue
        first = RowsInFront(site, nodes)
        if not joins_columns(call) or not all(first.keeps(each) for each in parts if rows.reach(each)):
            return _Asks(f"`{short(call)}` asks how many there are, and its gradient cannot be compiled", True)
    return None


def _is_filled(node: ast.expr) -> bool:
    """True for a new tensor, `x.new_zeros(2, 4)`."""
    return isinstance(node, ast.Call) and last_name(node.func) in _FILLED


def _along_another(call: ast.Call) -> bool:
    """True for `dim=1`, or another dimension than the first that is written out."""
    dims = [word.value for word in call.keywords if word.arg == "dim"]
    return any(isinstance(each, ast.Constant) and each.value != 0 for each in dims)


def _holds_integers(call: ast.Call) -> bool:
    """True for `torch.full((n,), 3, dtype=torch.long)`, through which no gradient flows."""
    asked = next((word.value for word in call.keywords if word.arg == "dtype"), None)
    return (last_name(asked) if asked is not None else "").rstrip("0123456789") in {"int", "uint", "long", "bool"}


class Rows:
    """Expressions and names whose number of rows depends on the data, and numbers that do."""

    def __init__(self, nodes: set[int], numbers: set[int]) -> None:
        self._nodes, self._numbers = nodes, numbers
        self._of_any_dtype = False
        self.names: set[str] = set()
        self.numbers: set[str] = set()

    def of_any_dtype(self) -> Rows:
        """A copy that reaches masks and integers, too."""
        found = Rows(self._nodes, self._numbers)
        found.names, found.numbers, found._of_any_dtype = {*self.names}, {*self.numbers}, True
        return found

    def is_number(self, node: ast.AST) -> bool:
        """True for one of the numbers, and for what is computed of one alone."""
        if id(node) in self._numbers or (isinstance(node, ast.Name) and node.id in self.numbers):
            return True
        if isinstance(node, ast.BinOp):
            return self.is_number(node.left) or self.is_number(node.right)
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.Not) and self.is_number(node.operand)
        return (
            isinstance(node, ast.Call) and last_name(node.func) in _OF_NUMBERS and any(map(self.is_number, node.args))
        )

    def is_cut(self, node: ast.AST) -> bool:
        """True for `x[:n]` and `x.narrow(0, 0, n)` of one of the numbers."""
        if isinstance(node, ast.Subscript):
            bounds = [part for part in walk(node.slice) if isinstance(part, ast.Slice)]
            return any(self.is_number(part) for each in bounds for part in (each.lower, each.upper) if part is not None)
        if not isinstance(node, ast.Call) or last_name(node.func) not in _SIZED:
            return False
        if _holds_integers(node) and not self._of_any_dtype:
            return False
        return self.takes_number(node.args)

    def takes_number(self, given: Iterable[ast.expr]) -> bool:
        """True where one of these arguments, or of what a tuple of them holds, is one of the numbers."""
        sizes = [part for each in given for part in listed(each)]
        return any(map(self.is_number, sizes))

    def reach(self, node: ast.AST) -> bool:
        """True where the rows come through to an expression, as many as they were."""
        if id(node) in self._nodes or (isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) in self.names):
            return True
        if self._numbers and self.is_cut(node):
            return True
        if isinstance(node, ast.Call):
            name, owner = last_name(node.func), [node.func.value] if isinstance(node.func, ast.Attribute) else []
            whole = len(node.args) == (self.reach(node.args[0]) if node.args else 0) and not node.keywords
            if name in _SETTLE or (name in _REDUCE and whole):
                return False
            return any(map(self.reach, [*owner, *node.args]))
        if isinstance(node, ast.Attribute) and node.attr in torch_api.PYTHON_ATTRIBUTES:
            return False
        if isinstance(node, ast.Lambda) or (isinstance(node, ast.Compare) and not self._of_any_dtype):
            return False
        return any(map(self.reach, children(node)))
