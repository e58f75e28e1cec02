"""What one look at the inside of a function collects, and what follows from it for its tests."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable

from graphmend_codemod.project.summary.candidates import is_python_annotation, needs
from graphmend_codemod.project.summary.records import Write
from graphmend_codemod.project.summary.spelling import Lines


class Body:
    """What a walk over one function body collects. `own` is the name of its first parameter if that is an instance.

    `parameters` have their annotations, `python` are those with a default that is no tensor, `defaults` the names that
    are defaults. `names` are plain names read, `reads` dotted ones, `calls` what is called (`?.f` on something
    unknown), `given` names that functions of torch get first. `values` are those that local names are assigned,
    `numbers` what is taken for a number.
    """

    def __init__(
        self, lines: Lines, own: str = "", parameters: dict[str, str] | None = None, python: Collection[str] = ()
    ) -> None:
        self.lines = lines
        self.own = own
        self.parameters = parameters or {}
        self.python = python
        self.defaults: dict[str, str] = {}
        self.names: set[str] = set()
        self.reads: set[str] = set()
        self.calls: set[str] = set()
        self.given: set[str] = set()
        self.stores: set[str] = set()
        self.values: dict[str, list[ast.expr]] = {}
        self.tests: list[ast.expr] = []
        self.dynamic: set[str] = set()
        self.asked: list[str] = []
        self.test = False
        self.log = False
        self.value = False
        self.rows = False
        self.loops = False
        self.pieces: list[str] = []
        self.selects = False
        self.indexed: list[str] = []
        self.masked = False
        self.reads_at: list[str] = []
        self.numbers: list[ast.expr] = []
        self.types: dict[tuple[str, str], None] = {}
        self.imports: list[tuple[str, str]] = []
        self.changes: dict[str, None] = {}
        self.returned: dict[str, None] = {}
        self.compiles: list[tuple[str, str]] = []
        self.attributes: list[tuple[str, str, ast.expr | None]] = []
        self.definitions: list[ast.stmt] = []
        self.writes: dict[Write, None] = {}
        self.narrowed: list[ast.If | ast.While] = []
        self.catching: list[ast.Try | ast.With | ast.AsyncWith] = []

    def keep(self, name: str, value: ast.expr) -> None:
        """Note that a local name is assigned a value."""
        self.values.setdefault(name, []).append(value)

    def origins(self, sources: Iterable[str]) -> set[str] | None:
        """The parameters, attributes (`self.NAME`) and names from outside that these names come from.

        None when one of them may hold a tensor whatever those hold.
        """
        todo, seen = list(sources), set()
        found: set[str] = set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self.dynamic:
                return None
            if name in self.parameters or name not in self.stores:
                found.add(name)
            for value in self.values.get(name, ()):
                if needs(value, todo):
                    return None
        return found

    def is_python_parameter(self, name: str) -> bool:
        """True when its annotation or its default says that it is no tensor."""
        annotation = self.parameters[name]
        return is_python_annotation(annotation) if annotation else name in self.python


def asks_history(body: Body) -> bool:
    """True for code that asks a tensor which function computed it: `x.grad_fn`."""
    return any(each.endswith(_HISTORY) for each in body.reads)


_HISTORY = ".grad_fn"


def chooses_rows(body: Body) -> bool:
    """True for code that may choose rows by a condition, or by sizes that it reads out of a tensor."""
    if body.rows or not body.loops:
        return body.rows
    if body.selects:
        return True
    values = body.values
    counted = (values.get(name, ()) for name in body.pieces)
    return any(not every or not all(isinstance(value, ast.ListComp) for value in every) for every in counted) or any(
        _is_choice(value) for name in body.indexed for value in values.get(name, ())
    )


_MASKS = ("mask", "masks", "valid")


def chooses_by_mask(body: Body) -> bool:
    """True for code that may read as many elements as a condition holds for: `x[y > 0]`, `x[mask]`, or at bounds that
    an array of NumPy has: `x[ends[0] : ends[1]]`."""
    if body.masked or not body.reads_at:
        return body.masked
    values, annotated = body.values, body.parameters
    return any(
        "mask" in name
        or name.endswith("valid")
        or "BoolTensor" in annotated.get(name, "")
        or any(map(_is_condition, values.get(name, ())))
        for name in body.reads_at
    )


_TESTS = frozenset("bool byte eq ne gt lt ge le logical_and logical_or logical_not isnan isinf isfinite isin".split())
_MOVES = frozenset(
    "view reshape flatten squeeze unsqueeze contiguous clone detach expand expand_as cpu cuda to".split()
)


def is_moved_mask(node: ast.expr) -> bool:
    """True for `y.ne(0)`, `mask.view(-1)`, `torch.isnan(y)` and `(y > 0).all(dim=1)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in _MOVES:
            return node.func.attr in _TESTS or (node.func.attr in {"any", "all"} and bool(node.args or node.keywords))
        owner = node.func.value
        node = node.args[0] if node.args and type(owner) is ast.Name and owner.id == "torch" else owner
        if type(node) is ast.Compare:
            return True
    return isinstance(node, ast.Name) and node.id.endswith(_MASKS)


def _is_condition(value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, (ast.BitAnd, ast.BitOr))
    if isinstance(value, ast.UnaryOp):
        return isinstance(value.op, ast.Invert)
    if isinstance(value, ast.Call):
        arrays = {"array", "asarray", "argmax", "argmin", "eye"}
        made = any(word.arg == "dtype" and getattr(word.value, "attr", "") == "bool" for word in value.keywords)
        named = isinstance(value.func, ast.Attribute) and value.func.attr in arrays
        return made or named or is_moved_mask(value) or _may_give_mask(value.func)
    if isinstance(value, ast.ListComp):
        value = value.elt
    return isinstance(value, ast.Compare)


_GIVE_NO_MASK = frozenset(dir(builtins))


def _may_give_mask(called: ast.expr) -> bool:
    """True for `is_known` and `self.inside`: a function or method of the project may return a mask."""
    if isinstance(called, ast.Attribute):
        return isinstance(called.value, ast.Name) and called.value.id == "self"
    return isinstance(called, ast.Name) and called.id[:1].islower() and called.id not in _GIVE_NO_MASK


def _is_choice(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Attribute) and value.func.attr == "bool"
    return isinstance(value, (ast.Compare, ast.Subscript))


def settle(body: Body) -> None:
    """Decide `body.test`: whether a test may hold a tensor. What is left in `body.asked` then only the class knows."""
    if not body.tests:
        return
    for test in body.tests:
        if needs(test, body.asked):
            body.test = True
            return
    origins = body.origins(body.asked)
    if origins is None or any(name in body.parameters and not body.is_python_parameter(name) for name in origins):
        body.test = True
    else:
        body.asked = sorted(origins)
