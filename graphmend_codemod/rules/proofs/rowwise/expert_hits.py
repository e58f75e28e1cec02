"""Loops over the experts that got any rows: what takes their place where a loop runs over all experts.

`for i in (mask.sum((-1, -2)) > 0).nonzero(): i = i[0]; ... mask[i] ...` runs as often as the data says, with a tensor
for the number of the expert. A loop over all of them has a Python integer, so each use of the number must be one for
which both are the same, or be written for an integer.
"""

from __future__ import annotations

import ast
import enum
import re
from dataclasses import dataclass, field

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.scope import children, walk
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.rowwise_expressions import (
    NotRowwise,
    bound_in,
    indices_of,
    is_none,
    where_of,
    without_list,
)

_READS = frozenset({"nonzero", "tolist", "unique", "argwhere"})
_COMPARED = frozenset({"torch.greater", "torch.gt", "torch.ne", "torch.not_equal", "torch.ge"})


class Kind(enum.Enum):
    """What a loop over the numbers of experts gets in a round."""

    NUMBER = "a Python integer or a 0-dim tensor"
    ROW = "a tensor of one element"


@dataclass(eq=False, repr=False)
class Hits:
    """The statements that tell which experts got rows, and what they become.

    `statements` stand before the loop and move into the eager path; `kept` are the lines of those that the compile
    path needs as well. `header` is the loop's, `written` the text for uses of its variable, `dropped` are statements
    that only turn it into a number, `numbers` the names that hold it.
    """

    header: str
    statements: list[ast.stmt] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    written: dict[int, tuple[ast.expr, str]] = field(default_factory=dict)
    dropped: frozenset[int] = frozenset()
    numbers: frozenset[str] = frozenset()


def hits_of(site: Site, node: ast.For) -> Hits:
    """What a loop over experts runs over; NotRowwise where no loop over all of them can take its place."""
    statements = statements_before(site, node)
    if not statements and not _data_dependent(site, node.iter):
        return Hits(f"for {site.text(node.target)} in {site.text(node.iter)}:")
    if not isinstance(node.target, ast.Name):
        raise NotRowwise(
            "the iterable depends on the routing, and the number of experts is unknown; loop over `range(num_experts)`"
        )
    source = _value_of(site, node.iter) if isinstance(node.iter, ast.Name) else node.iter
    uses = _Uses(site, node, node.target.id, _kind(site, source))
    hits = Hits(_header(site, node, uses.name), statements, written=uses.written, dropped=uses.dropped)
    hits.numbers = frozenset({uses.name})
    for statement in statements:
        hits.kept += _kept(site, node, statement)
    return hits


def statements_before(site: Site, node: ast.For) -> list[ast.stmt]:
    """The statements from the one that computes what the loop runs over, where that depends on the routing."""
    if not isinstance(node.iter, ast.Name):
        return []
    body, position = site.place.blocks[-1]
    for start in range(position - 1, -1, -1):
        if node.iter.id in bound_in(body[start]):
            return list(body[start:position]) if _data_dependent(site, body[start]) else []
    return []


def _kept(site: Site, node: ast.For, statement: ast.stmt) -> list[str]:
    """The lines of a statement before the loop that do not depend on the routing."""
    if isinstance(statement, ast.With) and len(statement.items) == 1 and statement.items[0].optional_vars is None:
        context = statement.items[0].context_expr
        if isinstance(context, ast.Call) and site.resolve(context.func) == "torch.no_grad":
            lines = [line for inner in statement.body for line in _kept(site, node, inner)]
            return [f"with {site.text(context)}:", *("    " + line for line in lines)] if lines else []
    if not isinstance(statement, ast.Assign):
        raise NotRowwise(f"`{speculation.short(statement)}` runs between the loop and the definition of its iterable")
    if not _data_dependent(site, statement):
        return [site.text(statement)]
    for name in bound_in(statement):
        if site.live_after(name):
            raise NotRowwise(f"`{name}` is read after the loop")
        if any(isinstance(part, ast.Name) and part.id == name for each in node.body for part in walk(each)):
            raise NotRowwise(f"`{name}` depends on the routing, and the loop reads it")
    return []


def _data_dependent(site: Site, node: ast.AST) -> bool:
    """True when something in `node` has as many elements as a condition holds for, or reads a tensor's values."""
    return any(
        getattr(part.func, "attr", "") in _READS or where_of(site, part) is not None
        for part in walk(node)
        if isinstance(part, ast.Call)
    )


def _value_of(site: Site, name: ast.Name) -> ast.expr | None:
    """What a name was last assigned above the place where it is read, in the blocks around the loop."""
    for body, position in reversed(site.place.blocks):
        for statement in reversed(body[:position]):
            inner = statement.body if isinstance(statement, ast.With) else [statement]
            for each in reversed(inner):
                if each.lineno < name.lineno and name.id in bound_in(each):
                    return each.value if isinstance(each, ast.Assign) and len(each.targets) == 1 else None
    return None


def _kind(site: Site, source: ast.expr | None) -> Kind:
    inner = None if source is None else without_list(source)
    if inner is None:
        raise NotRowwise("cannot infer the iterable of the loop")
    if isinstance(inner, ast.Call) and (site.resolve(inner.func) == "torch.unique" or _is_method(inner, "unique")):
        return Kind.NUMBER
    found = where_of(site, inner)
    if found is None or found[1] is None:
        raise NotRowwise(
            "the iterable depends on the routing, and the number of experts is unknown; loop over `range(num_experts)`"
        )
    if _rank(site, found[0]) != 1:
        raise NotRowwise(f"cannot infer that `{speculation.short(found[0])}` has one element for each expert")
    return Kind.ROW if found[1] == -1 else Kind.NUMBER


def _is_method(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == name


def _rank(site: Site, node: ast.expr) -> int | None:
    """How many dimensions a tensor has, as far as the last operations on it tell."""
    if isinstance(node, ast.Name):
        value = _value_of(site, node)
        return None if value is None else _rank(site, value)
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        return _rank(site, node.left) if isinstance(node.comparators[0], ast.Constant) else None
    if not isinstance(node, ast.Call):
        return None
    if site.resolve(node.func) in _COMPARED and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
        return _rank(site, node.args[0])
    if _is_method(node, "permute") or _is_method(node, "reshape") or _is_method(node, "view"):
        listed = len(node.args) == 1 and isinstance(node.args[0], (ast.Tuple, ast.List))
        parts = node.args[0].elts if listed else node.args  # type: ignore[attr-defined]
        spelled = len(parts) > 1 and not any(isinstance(part, ast.Starred) for part in parts)
        return len(parts) if spelled else None
    if _is_method(node, "sum") and isinstance(node.func, ast.Attribute):
        dims = [word.value for word in node.keywords if word.arg == "dim"] or node.args[:1]
        plain = len(node.args) + len(node.keywords) == 1
        before = _rank(site, node.func.value)
        if plain and dims and before is not None:
            return before - (len(dims[0].elts) if isinstance(dims[0], (ast.Tuple, ast.List)) else 1)
    return None


def _header(site: Site, node: ast.For, name: str) -> str:
    """The loop over all experts: the first dimension that the number indexes, of what chooses rows before others."""
    for part in walk(node):
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
            for dimension, element in enumerate(indices_of(part)):
                if isinstance(element, ast.Name) and element.id == name:
                    return f"for {name} in range({site.text(part.value)}.shape[{dimension}]):"
                if is_none(element):
                    break
    raise NotRowwise(
        "the iterable depends on the routing, and the number of experts is unknown; loop over `range(num_experts)`"
    )


class _Uses:
    """How a loop uses the number of its expert. NotRowwise for a use that an integer would change."""

    def __init__(self, site: Site, node: ast.For, name: str, kind: Kind) -> None:
        self.name = name
        self.written: dict[int, tuple[ast.expr, str]] = {}
        self.dropped: frozenset[int] = frozenset()
        self._site = site
        self._kind = kind
        self._parents = {id(child): parent for parent in walk(node) for child in children(parent)}
        body = node.body
        if self._turns_into_number(body[0]):
            assert isinstance(body[0], ast.Assign)
            assert isinstance(body[0].targets[0], ast.Name)
            self.dropped = frozenset({id(body[0])})
            self.name = body[0].targets[0].id
            body = body[1:]
            self._kind = Kind.NUMBER
            names = {part.id for each in body for part in walk(each) if isinstance(part, ast.Name)}
            if self.name != name and name in names:
                raise NotRowwise(f"`{name}` is used beside `{self.name}`")
        for statement in body:
            for part in walk(statement):
                if isinstance(part, ast.Name) and part.id == self.name:
                    self._use(part)

    def _turns_into_number(self, statement: ast.stmt) -> bool:
        """True for `i = i[0]`, `i = i.item()`, `i = int(i)`."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        target, value = statement.targets[0], statement.value
        while isinstance(value, ast.Call) and not value.keywords:
            if _is_method(value, "item") and not value.args:
                value = value.func.value  # type: ignore[attr-defined]
            elif self._site.resolve(value.func) == "builtins.int" and len(value.args) == 1:
                value = value.args[0]
            else:
                return False
        if isinstance(value, ast.Subscript) and self._kind is Kind.ROW and _is_zero(value.slice):
            value = value.value
        converted = isinstance(value, ast.Name) and value.id == self.name and value is not statement.value
        return converted and isinstance(target, ast.Name)

    def _use(self, name: ast.Name) -> None:
        parent = self._parents[id(name)]
        if not isinstance(name.ctx, ast.Load):
            raise NotRowwise(f"`{name.id}` is bound again in the loop")
        if isinstance(parent, ast.Attribute) and parent.attr == "item":
            call = self._parents[id(parent)]
            if isinstance(call, ast.Call) and not call.args:
                self._write(call, name.id)
                return
        if isinstance(parent, ast.Attribute):
            raise NotRowwise(f"`{self._site.text(parent)}` needs a tensor")
        if self._kind is Kind.NUMBER:
            if isinstance(parent, ast.Subscript) and parent.value is name:
                raise NotRowwise(f"`{self._site.text(parent)}` needs a tensor")
            return
        self._use_of_row(name, parent)

    def _use_of_row(self, name: ast.Name, parent: ast.AST) -> None:
        if isinstance(parent, ast.Subscript) and parent.value is name and _is_zero(parent.slice):
            self._write(parent, name.id)
            return
        if isinstance(parent, ast.Subscript) and parent.slice is name:
            if self._is_module_list(parent.value):
                return
            method = self._parents[id(parent)]
            call = self._parents.get(id(method))
            squeezed = isinstance(method, ast.Attribute) and method.attr == "squeeze" and isinstance(call, ast.Call)
            if squeezed and [_is_zero(each) for each in call.args] == [True] and not call.keywords:  # type: ignore[union-attr]
                self._write(call, self._site.text(parent))  # type: ignore[arg-type]
                return
        raise NotRowwise(f"`{name.id}` is used as a one-element tensor")

    def _write(self, node: ast.expr, text: str) -> None:
        segment = self._site.source.segment(self._site.span(node))
        # Python up to 3.11 may say wrong positions for what stands in an f-string.
        if re.sub(r"\s", "", segment) != re.sub(r"\s", "", ast.unparse(node)):
            raise NotRowwise(f"`{ast.unparse(node)}` has an unsupported form")
        self.written[id(node)] = (node, text)

    def _is_module_list(self, node: ast.expr) -> bool:
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            return False
        fact = self._site.evaluator.scope.attribute(node.attr)
        own = node.value.id == self._site.evaluator.scope.self_name
        return own and fact is not None and fact.callee == "torch.nn.ModuleList"


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and node.value is not False
