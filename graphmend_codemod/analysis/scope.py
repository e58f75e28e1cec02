"""Names inside one function: which are local, and what a dotted expression resolves to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from graphmend_codemod.project.index.facts import AttributeFact, ClassFacts, IndexView

if TYPE_CHECKING:
    from graphmend_codemod.analysis.outline import Outline

Node = TypeVar("Node", bound=ast.AST)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_SCOPES = frozenset(SCOPES)
INSIDE = "graphmend_inside"
"""Where a function's tree keeps what a walk through it found: rules and analyses ask again and again."""
_BOUND = "graphmend_bound"
_WRITTEN = "graphmend_written"
_SIMPLE = frozenset({ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Assert, ast.Pass})
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def with_plain_assignments(node: ast.AST, inside: bool = True) -> None:
    """Makes `x = y` of each `x: int = y`, and `pass` of each `x: int`, in the functions of a tree.

    So nothing else has to know two kinds of assignments. Each new statement keeps the one that the author wrote
    (`as_written`). With `inside` the node itself is in a function. Bodies of classes are left as they are, since an
    annotation may be a field there.
    """
    inside = inside and node.__class__ is not ast.ClassDef
    function = inside or node.__class__ in (ast.FunctionDef, ast.AsyncFunctionDef)
    for name in _BLOCKS:
        block = getattr(node, name, None)
        if not isinstance(block, list):  # `a if b else c` has a body, too
            continue
        for place, each in enumerate(block):
            if each.__class__ is ast.AnnAssign and function:
                block[place] = _plain(each)
            elif each.__class__ not in _SIMPLE:
                with_plain_assignments(each, function)


def _plain(node: ast.AnnAssign) -> ast.stmt:
    """The assignment without its annotation; nothing for `x: int` alone, which binds nothing."""
    plain: ast.stmt
    if node.value is not None:
        plain = ast.Assign([node.target], node.value)
    elif isinstance(node.target, ast.Name):
        plain = ast.Pass()
    else:
        return node
    setattr(plain, _WRITTEN, node)
    return ast.copy_location(plain, node)


def as_written(node: ast.AST) -> ast.AST:
    """A node as the author wrote it: with the annotation of an assignment that has one."""
    return getattr(node, _WRITTEN, node)


def annotation_of(node: ast.Assign) -> ast.expr | None:
    """What the author annotates the one target of an assignment with."""
    written = as_written(node)
    return written.annotation if isinstance(written, ast.AnnAssign) else None


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` for a chain of attributes on a name, else None."""
    parts: list[str] = []
    while node.__class__ is ast.Attribute:
        parts.append(node.attr)
        node = node.value
    if node.__class__ is not ast.Name:
        return None
    if not parts:
        return node.id
    parts.append(node.id)
    return ".".join(reversed(parts))


_LEAVES = frozenset(
    {
        "ctx", "op", "ops", "id", "attr", "arg", "name", "kind", "type_comment", "lineno", "is_async", "names",
        "module", "level", "conversion", "simple", "rest", "kwd_attrs", "tag", "str",
    }
)  # fmt: skip
_WITH_GAPS = frozenset({ast.Dict, ast.arguments})
NODE_FIELDS: dict[type[Any], tuple[str, ...]] = {
    kind: tuple(name for name in kind._fields if name not in _LEAVES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""For each type of node the fields that hold nodes, without operators and `ctx` markers."""
NODE_FIELDS.update({ast.Constant: (), ast.MatchSingleton: ()})


def put_children(node: ast.AST, fields: tuple[str, ...], found: list[Any]) -> None:
    """Put the nodes in these fields of `node` at the end of `found`."""
    kind = node.__class__
    if kind is ast.Attribute:
        found.append(node.value)  # type: ignore[attr-defined]
        return
    if kind in _WITH_GAPS:
        found += [item for name in fields for item in _listed(getattr(node, name)) if item is not None]
        return
    for name in fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += value
        elif value is not None:
            found.append(value)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below `node`, without operators and `ctx` markers. Faster than `ast.iter_child_nodes`."""
    found: list[ast.AST] = []
    put_children(node, NODE_FIELDS[node.__class__], found)
    return found


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """`root` and every node below it."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if fields := NODE_FIELDS[node.__class__]:
            put_children(node, fields, stack)


def of_kind(nodes: Iterable[ast.AST], kind: type[Node]) -> Iterator[Node]:
    """The nodes of one class among some, such as the calls in a tree: `of_kind(walk(tree), ast.Call)`."""
    return (each for each in nodes if isinstance(each, kind))


def own_parts(statement: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement without the statements inside it; the statement itself where it holds no others."""
    if not hasattr(statement, "body"):
        return list(walk_in_layers(statement))
    heads = [getattr(statement, field, None) for field in ("test", "iter", "target", "items", "subject")]
    roots = [each for head in heads for each in (head if isinstance(head, list) else [head]) if each is not None]
    return [part for root in roots for part in walk_in_layers(root)]


def parents_in(root: ast.AST) -> dict[int, ast.AST]:
    """The node above each node below `root`, by its id."""
    return {id(child): parent for parent in walk(root) for child in children(parent)}


def walk_in_layers(root: ast.AST) -> Iterator[ast.AST]:
    """`root` and every node below it in the order of `ast.walk`, without operators and import aliases."""
    todo = [root]
    for node in todo:
        yield node
        if fields := NODE_FIELDS[node.__class__]:
            put_children(node, fields, todo)


def walk_scope(root: ast.AST) -> Iterable[ast.AST]:
    """Every node below `root` that runs in its scope (nested functions and classes are yielded, not entered)."""
    if root.__class__ is not ast.FunctionDef:
        return _walk_scope(root)
    inside: list[ast.AST] | None = root.__dict__.get(INSIDE)
    if inside is None:
        inside = root.__dict__[INSIDE] = list(_walk_scope(root))
    return inside


def _walk_scope(root: ast.AST) -> Iterator[ast.AST]:
    stack = children(root)
    while stack:
        node = stack.pop()
        yield node
        if (fields := NODE_FIELDS[node.__class__]) and node.__class__ not in _SCOPES:
            put_children(node, fields, stack)


def bound_in(root: ast.AST) -> tuple[str, ...]:
    """The names that a part of the function binds, in order, looked for once: loops inside of loops are run often."""
    known: tuple[str, ...] | None = root.__dict__.get(_BOUND)
    if known is None:
        names: set[str] = set()
        for node in (root, *walk_scope(root)):
            kind = node.__class__
            if kind is ast.Name:
                if not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                    names.add(node.id)  # type: ignore[attr-defined]
            elif isinstance(node, ast.Attribute):
                if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
                    names.add(f"self.{node.attr}")
            elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                names.add(node.name)
        known = root.__dict__[_BOUND] = tuple(sorted(names))
    return known


def parameters(function: FunctionNode | ast.Lambda) -> list[ast.arg]:
    """All parameters in order, `*args` and `**kwargs` included."""
    args = function.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return named + [arg for arg in (args.vararg, args.kwarg) if arg is not None]


def body_of(function: FunctionNode) -> list[ast.stmt]:
    """The statements of a function behind its docstring."""
    return function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body


def parameter_names(function: FunctionNode | ast.Lambda) -> set[str]:
    """The names of all parameters."""
    return {arg.arg for arg in parameters(function)}


def defaults_of(function: FunctionNode | ast.Lambda) -> list[tuple[ast.arg, ast.expr]]:
    """The parameters that have defaults, with these."""
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    plain = zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True)
    named = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return [*plain, *((each, default) for each, default in named if default is not None)]


class Scope:
    """The function under analysis: its module, the class whose `self` it gets, the names that it binds itself.

    `locals` are the names that it binds itself. `closure` holds names of enclosing functions: they are not global.
    `self_name` is the name by which the function calls its instance, if it is a method or gets `self` handed over.
    """

    def __init__(
        self,
        module: str,
        index: IndexView,
        node: FunctionNode,
        class_qualified: str | None,
        outline: Outline,
        closure: frozenset[str] = frozenset(),
    ) -> None:
        self.module = module
        self.index = index
        self.node = node
        self.class_qualified = class_qualified
        self.outline = outline
        self.locals = outline.names
        self.closure = closure
        self.self_name = _instance(node) if class_qualified is not None else None
        self._facts: ClassFacts | None = None
        self._asked_for_facts = not class_qualified
        self._resolved: dict[str, str | None] = {}

    @property
    def class_facts(self) -> ClassFacts | None:
        """Facts of the class whose instance `self` is; None where there is none."""
        if not self._asked_for_facts and self.class_qualified is not None:
            self._asked_for_facts = True
            self._facts = self.index.class_facts(self.class_qualified)
        return self._facts

    def is_local(self, name: str) -> bool:
        """True for names bound in this function or in one around it."""
        return name in self.locals or name in self.closure

    def resolve_global(self, name: str) -> str | None:
        """Qualified name of a dotted name whose first part is not local; None where there is none."""
        if name not in self._resolved:
            self._resolved[name] = self.index.resolve(self.module, name)
        return self._resolved[name]

    def attribute(self, name: str) -> AttributeFact | None:
        """How `self.<name>` came to be; None where there is none."""
        facts = self.class_facts
        return facts.attributes.get(name) if facts else None


def _instance(node: FunctionNode) -> str | None:
    """The first parameter of a method that is bound to an instance."""
    args = [*node.args.posonlyargs, *node.args.args]
    names = {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
    return args[0].arg if args and names.isdisjoint({"staticmethod", "classmethod"}) else None
