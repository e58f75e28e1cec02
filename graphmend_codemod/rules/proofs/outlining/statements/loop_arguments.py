"""What a loop reads from the function around it, as arguments of a function that holds the loop.

What an argument is may be a guess: a condition, which torch.compile folds while it traces, has to agree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from graphmend_codemod.analysis import speculation, torch_api
from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.patterns import all_names, elements_of, is_attribute, is_name, rebinds
from graphmend_codemod.analysis.scope import defaults_of, parameters, parents_in, walk, walk_scope
from graphmend_codemod.analysis.values import Origin, Value, ValueKind
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.project.summary.computing import OPERATIONS
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import Argument, is_bound_before
from graphmend_codemod.rules.proofs.untraced.evidence import is_array

_PLAIN = frozenset(
    {
        AttributeKind.CONSTANT,
        AttributeKind.ARGUMENT,
        AttributeKind.CONFIG,
        AttributeKind.OTHER,
        AttributeKind.CHANGED,
    }
)
_METADATA = frozenset({"shape", "size", "dtype", "device", "ndim", "dim", "numel"})
_OF_TENSORS = OPERATIONS | _METADATA | {"cpu", "to", "item", "tolist", "unbind", "long", "int"}
_KEYWORDS = {"device": "torch.device", "dtype": "torch.dtype"}
_BUILT_IN = frozenset({"int", "float", "bool"})
_NUMBERS = {"int": "SymInt", "float": "float", "bool": "bool", "torch.device": "Device", "torch.dtype": "ScalarType"}


def made_before(site: Site, name: str) -> ast.Call:
    """The call before the statement that made the tensor `name`, whose memory nothing else shares since then.

    NotProven if something else may refer to it.
    """
    for statement in _before(site):
        if rebinds(statement, name):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and _is_fresh(site, statement):
                assert isinstance(statement.value, ast.Call)
                return statement.value
            break
        if _mentions(statement, name):
            raise NotProven(f"something may refer to `{name}` since `{speculation.short(statement)}`")
    raise NotProven(f"`{name}` is not made just before the loop; manually create it there, as `torch.zeros` does")


def _before(site: Site) -> Iterator[ast.AST]:
    """The statements that ran before this one in its block, and those before and the tests of the blocks around it."""
    for depth in range(len(site.place.blocks) - 1, -1, -1):
        body, position = site.place.blocks[depth]
        yield from reversed(body[:position])
        if depth == 0:
            return
        outer, place = site.place.blocks[depth - 1]
        around = outer[place]
        if not isinstance(around, ast.If):
            return
        yield around.test


def _is_fresh(site: Site, statement: ast.Assign) -> bool:
    where = site.at(statement)
    value = where.value(statement.value) if where is not None else None
    own = isinstance(statement.targets[0], ast.Name) and isinstance(statement.value, ast.Call)
    own = own and all(word.arg not in {"out", None} for word in statement.value.keywords)  # type: ignore[attr-defined]
    return own and value is not None and value.is_tensor and site.is_fresh(value)


def _mentions(statement: ast.AST, name: str) -> bool:
    """True when a statement uses more of a tensor than its size, dtype and device."""
    harmless = sum(is_attribute(part, name) and part.attr in _METADATA for part in walk(statement))
    return harmless < sum(is_name(part, name) for part in walk(statement))


def without_gradient(torch: str | None, name: str) -> tuple[str, str]:
    """Asks for a tensor through which no gradient goes, and to which autocast does nothing."""
    return (
        f"not ({torch}.is_grad_enabled() and {name}.requires_grad)",
        f"not ({name}.is_floating_point() and {torch}.is_autocast_enabled({name}.device.type))",
    )


class Arguments:
    """The arguments of a function that holds the loop `node`."""

    def __init__(self, site: Site, node: ast.For, filled: Sequence[str]) -> None:
        self._site = site
        self._node = node
        self._filled = filled
        self._own = site.evaluator.scope.self_name
        self._parents = parents_in(node)

    def found(self) -> list[Argument]:
        """The filled tensors first, then in order of the source. NotProven for what is no tensor or number."""
        arguments = {name: self._tensor(name) for name in self._filled}
        for part in self._in_order():
            if part.id == self._own:
                outer = self._parents[id(part)]
                text = f"{part.id}.{outer.attr}" if isinstance(outer, ast.Attribute) else part.id
                if text not in arguments:
                    arguments[text] = self._attribute(text, outer)
            elif part.id not in arguments and self._is_read(part.id):
                arguments[part.id] = self._local(part.id)
        return list(arguments.values())

    def _in_order(self) -> list[ast.Name]:
        scope = self._site.evaluator.scope
        names = [
            part
            for part in walk_scope(self._node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and scope.is_local(part.id)
        ]
        return sorted(names, key=lambda part: (part.lineno, part.col_offset))

    def _is_read(self, name: str) -> bool:
        """True when the loop may read the value that a name has before it."""
        if not rebinds(self._node, name):
            return True
        first = [part.id for part in walk(self._node.iter) if isinstance(part, ast.Name)]
        given = [part.id for part in walk(self._node.target) if isinstance(part, ast.Name)]
        return name in first or (name not in given and reads_before_writing(self._node.body, name))

    def _local(self, name: str) -> Argument:
        value = self._site.value(ast.Name(name, ast.Load()))
        if not is_bound_before(self._site, name, (ast.Assign, ast.AugAssign)):
            raise NotProven(f"`{name}` may be unbound before the loop")
        if is_array(self._site, name):
            raise NotProven(f"`{name}` is an array of NumPy; manually keep it a tensor")
        if value.kind is ValueKind.TENSOR or (value.kind is ValueKind.UNKNOWN and self._used_as_tensor(name)):
            return self._tensor(name)
        if value.callee is None and value.instance_of is None and not self._used_as_tensor(name):
            kind = self._number(name, value)
            if kind is not None:
                return _numbered(name, kind, name)
        raise NotProven(f"`{name}` is neither a Tensor nor a number")

    def _tensor(self, name: str) -> Argument:
        torch = self._site.torch
        value = self._site.value(ast.Name(name, ast.Load()))
        if not value.is_tensor and self._is_annotated_as_several(name):
            raise NotProven(f"`{name}` is a list of tensors by its annotation, and the custom operator takes tensors")
        # What follows `isinstance` is for other types, as the analysis sees it, and it would find the loop there again.
        sure = value.is_tensor and (not value.hint or name in self._filled)
        conditions = [] if sure else [f"{torch}.is_tensor({name})"]
        free = self._is_counted(name) or (name in self._filled and self._is_only_written(name))
        if not free:
            conditions += without_gradient(torch, name)
        return Argument(name, "Tensor", f"{torch}.Tensor", name, tuple(conditions))

    def _is_annotated_as_several(self, name: str) -> bool:
        """True for `embs: List[torch.Tensor]`, for which a condition on one tensor is never true."""
        given = parameters(self._site.evaluator.scope.node)
        annotation = next((each.annotation for each in given if each.arg == name), None)
        whole = annotation.value if isinstance(annotation, ast.Subscript) else None
        qualified = self._site.resolve(whole) if whole is not None else None
        return (qualified or "").rpartition(".")[2].lower() in {"list", "tuple", "sequence", "iterable"}

    def _is_only_written(self, name: str) -> bool:
        """True for a tensor made of numbers, of which slices are written and no element is read.

        No gradient goes into it where none goes into what is written, and autocast does not look at its dtype.
        """
        made = made_before(self._site, name)
        operation = torch_api.torch_function(self._site.resolve(made.func))
        method = made.func.attr if operation is None and isinstance(made.func, ast.Attribute) else ""
        if operation not in _MADE_OF_NUMBERS and method not in _MADE_LIKE_ANOTHER:
            return False
        if any(word.arg == "requires_grad" for word in made.keywords):
            return False
        mentions = [part for part in walk(self._node) if is_name(part, name)]
        return all(self._is_write_of_slices(part) for part in mentions)

    def _is_write_of_slices(self, part: ast.Name) -> bool:
        outer = self._parents[id(part)]
        if isinstance(outer, ast.Attribute):
            return outer.attr in _METADATA
        if not isinstance(outer, ast.Subscript) or not isinstance(outer.ctx, ast.Store):
            return False
        if isinstance(self._parents[id(outer)], ast.AugAssign):
            return False
        parts = elements_of(outer.slice)
        return outer.value is part and all(
            isinstance(each, (ast.Slice, ast.Constant)) or (isinstance(each, ast.Name) and each.id in self._counters)
            for each in parts
        )

    @cached_property
    def _counters(self) -> set[str]:
        """Variables of loops that count."""
        found: set[str] = set()
        for part in [self._node, *walk_scope(self._node)]:
            if not isinstance(part, ast.For) or not isinstance(part.iter, ast.Call):
                continue
            function = self._site.resolve(part.iter.func)
            target = part.target
            if function == "builtins.enumerate" and isinstance(target, ast.Tuple):
                target = target.elts[0]
            elif function != "builtins.range":
                continue
            if isinstance(target, ast.Name):
                found.add(target.id)
        rebound = [part for part in walk_scope(self._node) if isinstance(part, (ast.Assign, ast.AugAssign))]
        return {name for name in found if not any(rebinds(each, name) for each in rebound)}

    def _is_counted(self, name: str) -> bool:
        """True for what a call made of Python numbers in a dtype that follows from them: no gradient, no autocast."""
        last = next((each for each in self._site.place.above() if rebinds(each, name)), None)
        made = last.value if isinstance(last, ast.Assign) and len(last.targets) == 1 else None
        if not isinstance(made, ast.Call):
            return False
        operation = torch_api.torch_function(self._site.resolve(made.func))
        words = {word.arg for word in made.keywords}
        return operation in _COUNTING and not words & {"dtype", "requires_grad", "out", None}

    def _used_as_tensor(self, name: str) -> bool:
        for part in self._uses(name):
            outer = self._parents.get(id(part))
            if isinstance(outer, ast.Attribute) and outer.attr in _OF_TENSORS:
                return True
            if outer is self._node or self._is_enumerated(outer) or self._is_mask(outer):
                return True
        return False

    def _is_mask(self, node: ast.AST | None) -> bool:
        """True for the comparison in `x[labels == k, :]`."""
        if not isinstance(node, ast.Compare):
            return False
        inner: ast.AST = node
        while isinstance(outer := self._parents.get(id(inner)), (ast.Tuple, ast.UnaryOp, ast.BinOp)):
            inner = outer
        return isinstance(outer, ast.Subscript) and outer.slice is inner

    def _is_enumerated(self, outer: ast.AST | None) -> bool:
        return outer is self._node.iter and getattr(getattr(outer, "func", None), "id", "") in {"enumerate", "zip"}

    def _uses(self, name: str) -> list[ast.Name]:
        return [part for part in self._in_order() if part.id == name]

    def _number(self, name: str, value: Value) -> str | None:
        declared = self._declared(name)
        if declared is not None:
            return declared
        words = {
            outer.arg for part in self._uses(name) if isinstance(outer := self._parents.get(id(part)), ast.keyword)
        }
        if words and words <= _KEYWORDS.keys() and len(words) == 1:
            return _KEYWORDS[words.pop()]  # type: ignore[index]
        if value.origin is Origin.META:
            return None
        uses = self._uses(name)
        indices = [
            outer.slice
            for part in uses
            if isinstance(outer := self._parents.get(id(part)), ast.Subscript) and outer.value is part
        ]
        if not indices:
            return "int"
        return "list[int]" if len(indices) == len(uses) and all(map(_is_constant, indices)) else None

    def _declared(self, name: str) -> str | None:
        """What the annotation or the default of a parameter says."""
        arguments = self._site.evaluator.scope.node.args
        defaults = {each.arg: given for each, given in defaults_of(self._site.evaluator.scope.node)}
        for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            if each.arg != name:
                continue
            if isinstance(each.annotation, ast.Name) and each.annotation.id in _BUILT_IN:
                return each.annotation.id
            default = defaults.get(name)
            made = type(default.value).__name__ if isinstance(default, ast.Constant) else ""
            return made if made in _BUILT_IN else None
        return None

    def _attribute(self, text: str, outer: ast.AST) -> Argument:
        scope = self._site.evaluator.scope
        if not isinstance(outer, ast.Attribute) or not isinstance(outer.ctx, ast.Load):
            raise NotProven(f"the loop uses `{self._own}`")
        further = self._parents[id(outer)]
        facts, fact = scope.class_facts, scope.attribute(outer.attr)
        if fact is None or fact.kind not in _PLAIN or facts is None or outer.attr in facts.methods:
            raise NotProven(f"cannot infer that `{text}` is a number")
        if isinstance(further, (ast.Attribute, ast.Subscript)):
            raise NotProven(f"`{speculation.short(further)}` is looked up in the loop")
        if _is_iterated(further, outer):
            raise NotProven(f"the loop iterates over `{text}`, and the custom operator takes tensors and numbers")
        taken = all_names(self._node) | set(self._filled)
        name = outer.attr.lstrip("_")
        kind = "float" if fact.kind is AttributeKind.CONSTANT and "." in fact.text else "int"
        # A property, or an attribute that only some rounds need, is read when and as often as the loop says.
        own = (f'type(vars({self._own}).get("{outer.attr}")) is {kind}',)
        argument = _numbered(f"own_{name}" if name in taken else name, kind, text)
        return replace(argument, conditions=own, attribute=outer.attr)


_COUNTING = frozenset({"arange", "zeros", "ones", "full", "eye"})
_MADE_OF_NUMBERS = _COUNTING | {"empty", "zeros_like", "ones_like", "full_like", "empty_like"}
_ITERATE = frozenset({"enumerate", "len", "list", "reversed", "sorted", "tuple", "zip"})
_MADE_LIKE_ANOTHER = frozenset({"new_zeros", "new_ones", "new_full", "new_empty"})


def _is_iterated(around: ast.AST, node: ast.expr) -> bool:
    """True for `x` in `for each in x`, `enumerate(x)` and `len(x)`, where it is no number."""
    if isinstance(around, (ast.For, ast.AsyncFor, ast.comprehension)):
        return around.iter is node
    called = around.func if isinstance(around, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in _ITERATE


def _is_constant(index: ast.expr) -> bool:
    if isinstance(index, ast.Slice):
        return all(part is None or _is_constant(part) for part in (index.lower, index.upper, index.step))
    return (isinstance(index, ast.Constant) and type(index.value) is int) or (
        isinstance(index, ast.UnaryOp) and _is_constant(index.operand)
    )


def _numbered(name: str, kind: str, given: str) -> Argument:
    if kind == "list[int]":
        # A bool is an int for `isinstance`, and another one for torch.
        whole = (f"type({name}) is list", f"all(type(each) is int for each in {name})")
        return Argument(name, "SymInt[]", kind, given, whole)
    return Argument(name, _NUMBERS[kind], kind, given, (f"type({name}) is {kind}",))
