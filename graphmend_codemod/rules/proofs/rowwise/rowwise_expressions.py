"""One expression about some rows of its tensors, written for all rows; see `rowwise`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.analysis import speculation, torch_api
from graphmend_codemod.analysis.scope import walk, walk_in_layers
from graphmend_codemod.rules.framework.site import Site

if TYPE_CHECKING:
    from graphmend_codemod.rules.proofs.rowwise.rowwise import Rewriter

ROW, SLOT, MASK = "row", "slot", "mask"
_KEEPS_ROWS = (
    torch_api.SAME_ANY_DTYPE | torch_api.SAME_IF_FLOATING | torch_api.BINARY | frozenset(torch_api.CASTS)
) - frozenset("softmax log_softmax cumsum cumprod normalize tril triu flip layer_norm roll sort".split())
_KEEPS_ROWS |= frozenset("to type type_as mul_ add_ div_ sub_ contiguous clone detach".split())
_ON_LAST = frozenset({"unsqueeze", "squeeze", "softmax", "log_softmax", "normalize"})
_META = frozenset({"dtype", "device"})


class NotRowwise(Exception):
    """Why the code cannot be written for all rows; the text is the condition that failed."""


class Rows(NamedTuple):
    """What an expression holds: rows as they were chosen, or else computed from such rows.

    `fact` has to hold while tracing for chosen rows to have one dimension each.
    """

    chosen: bool = False
    fact: str | None = None


@dataclass(eq=False, repr=False)
class Choice:
    """The rows that one mask chooses.

    `mask` is the name of a bool tensor with a last dimension of one; `slots`, where rows are chosen through a table of
    several slots a row, is the name of that table, (rows, slots). `rank` spells the rank of what chooses, `line` is
    the statement that has to come first.
    """

    mask: str
    rank: str = "1"
    slots: str | None = None
    line: str = ""


class Dense:
    """One expression for all rows. `visit` says whether it holds rows, `text` gives what it becomes.

    `indexing` is true for an index that is brought to the shape of what it indexes: `rows.view(-1, 1).repeat(1, n)`.
    """

    def __init__(self, rewriter: Rewriter, target: str | None = None, *, indexing: bool = False) -> None:
        self.rewriter = rewriter
        self.target = target
        self.indexing = indexing
        self.outermost: ast.expr | None = None
        self.site = rewriter.site
        self.changes: dict[int, tuple[ast.expr, str]] = dict(rewriter.site.written)

    def text(self, node: ast.expr) -> str:
        """The source text of `node` on one line, with the changed parts exchanged."""
        if id(node) in self.changes:
            return self.changes[id(node)][1]
        source, parts = self.site.source, []
        start, end = self._offsets(node)
        inside = sorted(
            (self._offsets(part), text)
            for part, text in self.changes.values()
            if start <= self._offsets(part)[0] and self._offsets(part)[1] <= end
        )
        at = start
        for (first, last), text in inside:
            if first < at:
                continue
            parts += [source.text[at:first], text]
            at = last
        parts.append(source.text[at:end])
        return on_one_line("".join(parts))

    def _offsets(self, node: ast.expr) -> tuple[int, int]:
        span, source = self.site.span(node), self.site.source
        return source.offset(span.start_line, span.start_column), source.offset(span.end_line, span.end_column)

    def change(self, node: ast.expr, text: str) -> None:
        """Write `text` instead of `node`."""
        self.changes[id(node)] = (node, text)

    def visit(self, node: ast.expr) -> Rows | None:
        """Rows, or None for anything else; NotRowwise where rows are used in a way that is not by the row."""
        self.outermost = self.outermost or node
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp):
            return self._operator(node)
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return self.visit(node.operand)
        if isinstance(node, ast.Attribute):
            if self.visit(node.value) is not None and node.attr not in _META:
                raise NotRowwise(f"`{self.site.text(node)}` depends on the number of selected rows")
            return None
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and self.visit(child) is not None:
                raise NotRowwise(f"`{speculation.short(node)}` may depend on the number of selected rows")
        return None

    def _name(self, node: ast.Name) -> Rows | None:
        if node.id in self.rewriter.selectors:
            raise NotRowwise(f"`{node.id}` is used for more than selecting rows")
        if node.id in self.rewriter.inlined:
            self.change(node, self.rewriter.inlined[node.id])
        return self.rewriter.rows.get(node.id)

    def _subscript(self, node: ast.Subscript) -> Rows | None:
        elements = indices_of(node)
        if (whole := self.rewriter.whole_of(node)) is not None:
            self.change(node, whole[0])
            return whole[1]
        roles = [self.rewriter.role(element) for element in elements]
        if not any(roles):
            rows = self.visit(node.value)
            for element in elements:
                if self.visit(element) is not None:
                    raise NotRowwise(f"`{self.site.text(node)}` indexes with the selected rows")
            if rows is not None and not is_whole(elements[0]) and not is_ellipsis(elements[0]):
                raise NotRowwise(f"`{self.site.text(node)}` takes one of the selected rows")
            return rows
        if self.visit(node.value) is not None:
            raise NotRowwise(f"`{self.site.text(node)}` selects among the selected rows")
        if SLOT in roles:
            return self._weights(node, elements, roles)
        self.change(node, self.rewriter.all_rows(node))
        return Rows(True, self._fact(node, elements, roles))

    def _weights(self, node: ast.Subscript, elements: list[ast.expr], roles: list[str | None]) -> Rows:
        """`w[rows, slots]`: the weight of each row, summed over its slots."""
        choice = self.rewriter.choice
        order = [role for role in roles if role]
        rest = [element for element, role in zip(elements, roles, strict=True) if role is None]
        added = len(rest) == 1 and is_none(rest[0]) and roles[-1] is None
        if choice is None or choice.slots is None or sorted(order) != [ROW, SLOT] or (rest and not added):
            raise NotRowwise(f"`{self.site.text(node)}` is not one weight per row and slot")
        table = choice.slots if order[0] == ROW else f"{choice.slots}.T"
        dimension = -1 if order[0] == ROW else 0
        chosen = f"{self.site.torch}.where({table}, {self.site.text(node.value)}, 0)"
        if order[0] == ROW and added:
            text = f"{chosen}.sum(-1, keepdim=True)"
        else:
            text = f"{chosen}.sum({dimension})" + (".unsqueeze(-1)" if added else "")
        whole = self.target is not None and self.target not in text
        self.change(
            node, self.rewriter.named("row_weights", text, self.target if whole and self.outermost is node else None)
        )
        return Rows()

    def _fact(self, node: ast.Subscript, elements: list[ast.expr], roles: list[str | None]) -> str | None:
        """What says that a row has one dimension, over which the mask is broadcast."""
        choice = self.rewriter.chosen
        single = sum(1 for element, role in zip(elements, roles, strict=True) if role is None and not is_whole(element))
        added = sum(map(is_none, elements))
        more = 1 + single - 2 * added
        wanted = str(int(choice.rank) + more) if choice.rank.isdigit() else f"{choice.rank} + {more}"
        return f"{self.site.operand(node.value)}.dim() == {wanted}"

    def _call(self, node: ast.Call) -> Rows | None:
        reshaped = self._reshaped(node)
        if reshaped is not None:
            return reshaped
        arguments = [*node.args, *(word.value for word in node.keywords)]
        owner = self.visit(node.func.value) if isinstance(node.func, ast.Attribute) else None
        found = [(argument, self.visit(argument)) for argument in arguments]
        held = [rows for _, rows in found if rows is not None]
        if owner is not None:
            return self._method(node, owner)
        if not held:
            if not isinstance(node.func, ast.Attribute):
                self.visit(node.func)
            return None
        name = torch_api.torch_function(self.site.resolve(node.func))
        if name is not None:
            return self._function(node, name, found)
        self._check_callee(node)
        self.rewriter.calls.append(node.func)
        for argument, rows in found:
            if rows is not None and rows.chosen:
                self._mask_argument(argument, rows)
        return Rows()

    def _mask_argument(self, argument: ast.expr, rows: Rows) -> None:
        choice = self.rewriter.chosen
        if rows.fact is not None:
            self.rewriter.conditions[rows.fact] = None
        self.change(argument, f"{self.site.torch}.where({choice.mask}, {self.text(argument)}, 0)")

    def _reshaped(self, node: ast.Call) -> Rows | None:
        """`x[None, rows].reshape(-1, width)`: rows of `x` again."""
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in {"reshape", "view"}:
            return None
        inner = function.value
        if not isinstance(inner, ast.Subscript) or len(node.args) != 2 or not is_minus_one(node.args[0]):
            return None
        elements = indices_of(inner)
        alone = len(elements) == 1 or (len(elements) == 2 and is_none(elements[0]))
        if not alone or self.rewriter.role(elements[-1]) is None or self.rewriter.role(elements[-1]) == SLOT:
            return None
        if self.visit(inner.value) is not None:
            return None
        self.change(node, self.site.text(inner.value))
        return Rows(chosen=True)

    def _method(self, node: ast.Call, owner: Rows) -> Rows:
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        if self.indexing and name in {"view", "reshape", "repeat", "expand", "unsqueeze"}:
            return owner
        if name in _KEEPS_ROWS and not (name == "to" and len(node.args) > 2):
            return owner
        if name in _ON_LAST and len(node.args) + len(node.keywords) == 1:
            given = node.args[0] if node.args else node.keywords[0].value
            if is_minus_one(given):
                return Rows(False)
        raise NotRowwise(f"`{speculation.short(node)}` may not process each row independently")

    def _function(self, node: ast.Call, name: str, found: list[tuple[ast.expr, Rows | None]]) -> Rows:
        joined = _joined([rows for _, rows in found if rows is not None])
        first = found[0][1] is not None
        if name in _KEEPS_ROWS:
            return joined
        if name in {"linear", "matmul", "mm"} and first and not any(rows for _, rows in found[1:]):
            self.rewriter.calls += [argument for argument, _ in found[1:2]]
            return joined
        if name in {"softmax", "normalize"} and first:
            dims = [word.value for word in node.keywords if word.arg == "dim"] or node.args[1:2]
            if dims and is_minus_one(dims[0]):
                return joined
        if name == "einsum" and isinstance(node.args[0], ast.Constant) and self._row_by_row(node.args[0].value, found):
            return joined
        raise NotRowwise(f"`{speculation.short(node)}` may not process each row independently")

    def _row_by_row(self, equation: object, found: list[tuple[ast.expr, Rows | None]]) -> bool:
        if not isinstance(equation, str) or "->" not in equation or "." in equation:
            return False
        inputs, output = equation.replace(" ", "").split("->")
        terms = inputs.split(",")
        operands = [rows for _, rows in found[1:]]
        if len(terms) != len(operands):
            return False
        row = output[:1]
        return all(
            (term[:1] == row and row not in term[1:]) if rows is not None else row not in term
            for term, rows in zip(terms, operands, strict=True)
        )

    def _check_callee(self, node: ast.Call) -> None:
        qualified = self.site.resolve(node.func)
        if qualified is not None:
            raise NotRowwise(f"`{speculation.short(node)}` may not process each row independently")
        if isinstance(node.func, ast.Attribute) and not _is_path(node.func):
            raise NotRowwise(f"`{speculation.short(node)}` may not process each row independently")

    def _operator(self, node: ast.BinOp) -> Rows | None:
        left, right = self.visit(node.left), self.visit(node.right)
        if left is None and right is None:
            return None
        if isinstance(node.op, ast.MatMult) and (left is None or right is not None):
            raise NotRowwise(f"`{speculation.short(node)}` may not process each row independently")
        return _joined([rows for rows in (left, right) if rows is not None])


def _joined(held: list[Rows]) -> Rows:
    """Rows made of several; with two that were chosen apart, how many dimensions one has is not known."""
    same = all(rows == held[0] for rows in held)
    return held[0] if same else Rows()


def where_of(site: Site, node: ast.expr) -> tuple[ast.expr, int | None] | None:
    """The mask of `torch.where(mask)` and the number that a subscript takes of it, None where it takes none."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
        inner = where_of(site, node.value)
        return None if inner is None or inner[1] is not None else (inner[0], node.slice.value)
    if not isinstance(node, ast.Call):
        return None
    qualified = site.resolve(node.func)
    words = {word.arg: word.value for word in node.keywords}
    as_tuple = words.pop("as_tuple", None)
    if qualified == "torch.where" and len(node.args) == 1 and not words:
        return node.args[0], None
    mask: ast.expr | None = None
    if qualified == "torch.nonzero" and len(node.args) == 1:
        mask = node.args[0]
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "nonzero" and qualified is None and not node.args:
        mask = node.func.value
    elif isinstance(node.func, ast.Attribute) and node.func.attr in {"squeeze", "flatten", "view", "reshape"}:
        inner = where_of(site, node.func.value)
        return (inner[0], 0) if inner is not None and inner[1] == -1 else None
    if mask is None or words:
        return None
    return mask, None if isinstance(as_tuple, ast.Constant) and as_tuple.value is True else -1


def on_one_line(text: str) -> str:
    if "\n" not in text and "\r" not in text:
        return text
    tree = ast.parse(f"({text})", mode="eval")
    folded = re.sub(r",?\s+([)\]}])", r"\1", re.sub(r"([(\[{])\s+", r"\1", re.sub(r"\s*[\r\n]+\s*", " ", text)))
    same = "#" not in folded and "\\" not in folded and ast.dump(ast.parse(folded, mode="eval")) == ast.dump(tree)
    return folded if same else ast.unparse(tree.body)


def _is_path(node: ast.Attribute) -> bool:
    """True for `self.a.b`, whose parts are modules as far as one can see."""
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return isinstance(inner, ast.Name)


def indices_of(node: ast.Subscript) -> list[ast.expr]:
    """The parts of an index."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def without_list(node: ast.expr) -> ast.expr:
    """`x` for `x.tolist()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist":
        return node.func.value
    return node


def lookup(site: Site, node: ast.expr) -> bool:
    """True for an expression that only looks things up."""
    for part in walk_in_layers(node):
        if isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return False
        if isinstance(part, ast.Call):
            formats = isinstance(part.func, ast.Attribute) and part.func.attr in {"format", "unsqueeze", "squeeze"}
            if not formats and site.resolve(part.func) not in {"builtins.getattr", "builtins.str", "builtins.len"}:
                return False
    return True


def is_whole(node: ast.expr) -> bool:
    """True for `:`."""
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


def is_ellipsis(node: ast.expr) -> bool:
    """True for `...`."""
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def is_none(node: ast.expr) -> bool:
    """True for `None`."""
    return isinstance(node, ast.Constant) and node.value is None


def is_zero(node: ast.expr) -> bool:
    """True for the number 0."""
    return isinstance(node, ast.Constant) and node.value == 0 and node.value is not False


def is_minus_one(node: ast.expr) -> bool:
    """True for the number -1."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and ast.unparse(node.operand) == "1"


def bound_in(node: ast.AST) -> set[str]:
    """Local names that a statement binds."""
    return {part.id for part in walk(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}


def self_cast(node: ast.AST) -> str | None:
    """`y` for `y = y.to(rows.dtype)`, which does the same however often it runs."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return None
    name = node.targets[0].id
    value = node.value
    cast = (
        isinstance(value, ast.Call)
        and ast.unparse(value.func) == f"{name}.to"
        and len(value.args) == 1
        and isinstance(value.args[0], ast.Attribute)
        and value.args[0].attr == "dtype"
    )
    return name if cast else None
