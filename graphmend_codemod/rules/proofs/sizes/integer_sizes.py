"""The way of integers that are kept in tensors, from the attributes of a class to the sizes that are made of them.

The methods of the class are read as Dynamo runs them, with numbers in the place of the tensors. Where a statement needs
other text for that, the text is noted; where a number would get to something that may need a Tensor, so is the reason.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import all_given, asks_for_compiler, elements_of, is_size, is_within
from graphmend_codemod.analysis.scope import children, dotted, walk
from graphmend_codemod.analysis.torch_api import INT64_NAMES
from graphmend_codemod.rules.proofs.sizes.integer_tensors import ARITHMETIC, Kept, Resolve, own_attribute, spelled
from graphmend_codemod.rules.proofs.sizes.integer_ways import HANDED, HELD, INTEGERS, Env, NumberKind, Quotient, Way

PAD = "torch.nn.functional.pad"
_ROUNDS = {"torch.ceil": "math.ceil", "torch.floor": "math.floor"}
_LARGEST_SUMMAND = 2
"""The largest number added to a quotient for which `Quotient` tells whether it is rounded alike."""


class Methods:
    """The methods of a class, read with numbers in the place of its integer tensors."""

    def __init__(self, owner: ast.ClassDef, kept: Mapping[str, Kept], resolve: Resolve) -> None:
        self.kept, self.resolve = kept, resolve
        found = [each for each in owner.body if isinstance(each, ast.FunctionDef)]
        self.methods = {each.name: each for each in found if each.name != "__init__"}
        self._returning: dict[str, tuple[NumberKind | None, Way]] = {}

    def way(self) -> Way:
        """What leads to a size, and nothing else."""
        whole = Way()
        for name, method in self.methods.items():
            reader = Reader(self, name, {})
            reader.run(method.body)
            if reader.way.sinks:
                whole.add(reader.way)
                if not HELD.isdisjoint(reader.returned):
                    whole.reasons.append(f"`{name}` returns the number")
        return whole

    def returned(self, name: str) -> tuple[NumberKind | None, Way]:
        """What a method without decorators returns on every way, and how."""
        if name not in self._returning:
            self._returning[name] = (None, Way())
            method = self.methods[name]
            reader = Reader(self, name, {})
            reader.run(method.body)
            kinds = reader.returned
            plain = not method.decorator_list and isinstance(method.body[-1], ast.Return)
            self._returning[name] = (_together(kinds) if plain else None, reader.way)
        return self._returning[name]


class Reader:
    """One method, read with what its parameters hold."""

    def __init__(self, methods: Methods, name: str, env: Env) -> None:
        self.methods, self.name, self.env = methods, name, env
        self.way = Way()
        self.returned: list[NumberKind | None] = []
        self._statement: ast.stmt | None = None
        self._changes: dict[int, tuple[ast.expr, str]] = {}
        self._divided: dict[str, ast.stmt] = {}

    def run(self, body: list[ast.stmt]) -> None:
        """Read statements in order."""
        self.way.blocks.append(body)
        for statement in body:
            self._statement, self._changes = statement, {}
            self._read(statement)
            if self._changes:
                self.way.written[id(statement)] = (statement, self._changes)

    def _read(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self._assign(statement, statement.targets[0])
        elif isinstance(statement, ast.Return):
            kind = self._kind(statement.value) if statement.value is not None else None
            self.returned.append(kind)
            if kind not in INTEGERS and statement.value is not None:
                self._check(statement.value)
        elif isinstance(statement, ast.If):
            self._branch(statement)
        elif isinstance(statement, ast.Expr):
            self._check(statement.value)
        else:
            self._refuse_names(statement)

    def _branch(self, statement: ast.If) -> None:
        if asks_for_compiler(statement.test):
            self._refuse_names(statement)
            return
        self._check(statement.test)
        changes, before = self._changes, dict(self.env)
        self.run(statement.body)
        first, self.env = self.env, dict(before)
        self.run(statement.orelse)
        self.env = _joined(first, self.env)
        self._statement, self._changes = statement, changes
        if changes:
            self._refuse("a test needs the Python number")
            self._changes = {}

    def _assign(self, statement: ast.Assign, target: ast.expr) -> None:
        kind = self._kind(statement.value)
        if isinstance(target, ast.Tuple) and all(isinstance(each, ast.Name) for each in target.elts):
            several = kind is NumberKind.SEVERAL
            if not several:
                self._check(statement.value)
            for each in target.elts:
                self._bind(each.id, NumberKind.EITHER if several else None)  # type: ignore[attr-defined]
        elif isinstance(target, ast.Name):
            if kind is None:
                self._check(statement.value)
            self._bind(target.id, kind)
        else:
            self._check(statement.value)
            self._check(target)

    def _bind(self, name: str, kind: NumberKind | None) -> None:
        self.env.pop(name, None)
        if kind is not None:
            self.env[name] = kind
        if kind is NumberKind.QUOTIENT and self._statement is not None:
            self._divided[name] = self._statement

    # what an expression is

    def _kind(self, node: ast.expr) -> NumberKind | None:
        """What the expression is on the compile path; notes the text that makes it so."""
        before, calls = dict(self._changes), set(self.way.calls)
        kind = self._found(node)
        if kind is None:
            self._changes, self.way.calls = before, calls
        return kind

    def _found(self, node: ast.expr) -> NumberKind | None:
        if isinstance(node, ast.Constant):
            return NumberKind.SIZE if type(node.value) is int else None
        if isinstance(node, ast.Name):
            kind = self.env.get(node.id)
            return None if kind is NumberKind.MIXED else kind
        if (name := own_attribute(node)) in self.methods.kept and name is not None:
            self.way.names.add(name)
            self._changes[id(node)] = (node, spelled(name))
            return NumberKind.NUMBER
        if isinstance(node, (ast.Tuple, ast.List)) and node.elts:
            kinds = [self._found(each) for each in node.elts]
            return NumberKind.SEVERAL if _together(kinds) in HELD else None
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.Call):
            return self._called(node)
        return NumberKind.SIZE if is_size(node) else None

    def _arithmetic(self, node: ast.BinOp) -> NumberKind | None:
        left, right = self._found(node.left), self._found(node.right)
        if isinstance(node.op, ast.Div) and left is NumberKind.NUMBER and right is NumberKind.NUMBER:
            # A tensor in eager mode: torch divides a Python number by way of the reciprocal.
            divisor = own_attribute(node.right)
            if divisor is not None and self.methods.kept[divisor].buffer and self._statement is not None:
                self.way.quotients[id(self._statement)] = Quotient(self._statement, node.left, node.right)
                return NumberKind.QUOTIENT
            return None
        if NumberKind.QUOTIENT in (left, right):
            summand = node.right if left is NumberKind.QUOTIENT else node.left
            small = isinstance(summand, ast.Constant) and type(summand.value) is int
            small = small and abs(summand.value) <= _LARGEST_SUMMAND  # type: ignore[attr-defined]
            # One sum only: each rounds.
            first = isinstance(node.left if left is NumberKind.QUOTIENT else node.right, ast.BinOp)
            return NumberKind.QUOTIENT if small and first and isinstance(node.op, (ast.Add, ast.Sub)) else None
        if not isinstance(node.op, ARITHMETIC) or left not in INTEGERS or right not in INTEGERS:
            return None
        return NumberKind.NUMBER if NumberKind.NUMBER in (left, right) else _together([left, right])

    def _called(self, node: ast.Call) -> NumberKind | None:
        rounded = self._rounded(node)
        if rounded is not None:
            return rounded
        name = own_attribute(node.func)
        if name in self.methods.methods and name is not None and name.startswith("_"):
            kind, way = self.methods.returned(name)
            if kind in HELD:
                for each in all_given(node):
                    self._check(each)
                self.way.add(way)
                self.way.calls.add(id(node.func))
                self.way.called.add(name)
                return kind
        if self.methods.resolve(node.func) in {"builtins.max", "builtins.min"} and not node.keywords:
            kinds = [self._found(each) for each in node.args]
            return _together(kinds) if len(kinds) > 1 else None
        return NumberKind.SIZE if is_size(node) else None

    def _rounded(self, node: ast.Call) -> NumberKind | None:
        """`torch.ceil(quotient).to(torch.int64)`."""
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if not isinstance(inner, ast.Call) or node.keywords or len(inner.args) != 1 or inner.keywords:
            return None
        rounds = _ROUNDS.get(self.methods.resolve(inner.func) or "")
        method = node.func.attr  # type: ignore[attr-defined]
        whole = method == "long" and not node.args
        whole |= method == "to" and len(node.args) == 1 and self.methods.resolve(node.args[0]) in INT64_NAMES
        if rounds is None or not whole or self._found(inner.args[0]) is not NumberKind.QUOTIENT:
            return None
        quotient = inner.args[0]
        if isinstance(quotient, ast.Name) and self._statement is not None:
            self.way.rounded[id(self._statement)] = self._divided[quotient.id]
        text = ast.unparse(_Exchanged(self._changes).visit(copy.deepcopy(quotient)))
        self._changes = {key: value for key, value in self._changes.items() if not is_within(value[0], inner)}
        self._changes[id(node)] = (node, f"{rounds}({text})")
        return NumberKind.NUMBER

    # where it gets to

    def _check(self, node: ast.expr) -> None:
        """Note a reason where a number gets to something that may need a Tensor, and sizes where it is one of them."""
        if isinstance(node, ast.Call) and self.methods.resolve(node.func) == PAD:
            self._pad(node)
        elif isinstance(node, ast.Call) and own_attribute(node.func) in self.methods.methods:
            self._handed(node)
        elif isinstance(node, ast.Compare) and all(self._is_plain(each) for each in (node.left, *node.comparators)):
            return
        elif isinstance(node, ast.Subscript):
            self._check(node.value)
            bounds = elements_of(node.slice)
            for bound in bounds:
                if not isinstance(bound, ast.Slice):
                    self._check(bound)
                    continue
                for end in (bound.lower, bound.upper, bound.step):
                    if end is not None and not self._is_plain(end):
                        self._check(end)
        elif isinstance(node, ast.Name):
            if self.env.get(node.id, NumberKind.SIZE) is not NumberKind.SIZE:
                self._refuse(f"`{node.id}` may be needed as a Tensor")
        else:
            for child in children(node):
                if isinstance(child, ast.expr):
                    self._check(child)
                elif isinstance(child, (ast.keyword, ast.comprehension)):
                    for inner in children(child):
                        self._check(inner)  # type: ignore[arg-type]

    def _is_plain(self, node: ast.expr) -> bool:
        """True for arithmetic of sizes and of numbers in local names, which needs no other text."""
        before = dict(self._changes)
        plain = self._found(node) in INTEGERS and self._changes == before
        self._changes = before
        return plain

    def _holds(self, node: ast.expr) -> bool:
        """True for a tuple with an integer that is kept in a tensor."""
        return isinstance(node, (ast.Tuple, ast.List)) and any(
            (own_attribute(part) or "") in self.methods.kept
            or (isinstance(part, ast.Name) and self.env.get(part.id) in HELD)
            for part in walk(node)
        )

    def _pad(self, node: ast.Call) -> None:
        pads = node.args[1] if len(node.args) > 1 else next((w.value for w in node.keywords if w.arg == "pad"), None)
        kind = self._kind(pads) if pads is not None else None
        if pads is not None and kind is None and self._holds(pads):
            self._refuse(f"`{speculation.short(pads)}` contains a value that may not be an integer")
            kind = NumberKind.SEVERAL
        if kind is NumberKind.SEVERAL and self._statement is not None:
            self.way.sinks.append((self.name, self._statement))
        for each in all_given(node):
            if each is not pads or kind is None:
                self._check(each)

    def _handed(self, node: ast.Call) -> None:
        """A call of a method with numbers: what it does with them."""
        name = own_attribute(node.func) or ""
        method = self.methods.methods[name]
        static = [dotted(each) for each in method.decorator_list]
        names = [each.arg for each in (*method.args.posonlyargs, *method.args.args)]
        parameters = names if static == ["staticmethod"] else names[1:]
        known = static in ([], ["staticmethod"]) and not any(isinstance(each, ast.Starred) for each in node.args)
        pairs = [*zip(parameters, node.args, strict=False)]
        pairs += [(word.arg or "", word.value) for word in node.keywords]
        before = dict(self._changes)
        kinds = {parameter: self._kind(argument) for parameter, argument in pairs} if known else {}
        env: Env = {name: kind for name, kind in kinds.items() if kind in HANDED and kind is not None}
        unclear = [(name, each) for name, each in pairs if known and kinds[name] is None and self._holds(each)]
        env |= dict.fromkeys((name for name, _ in unclear), NumberKind.SEVERAL)
        reader = Reader(self.methods, name, env)
        if env:
            reader.run(method.body)
        if not reader.way.sinks:
            env, self._changes = {}, before
        for parameter, argument in pairs:
            if parameter not in env:
                self._check(argument)
        if not env:
            return
        for _, each in unclear:
            self._refuse(f"`{speculation.short(each)}` contains a value that may not be an integer")
        if not HANDED.isdisjoint(reader.returned):
            self._refuse(f"`{name}` returns the number")
        self.way.handed.add(name)
        self.way.add(reader.way)

    def _refuse(self, reason: str) -> None:
        self.way.reasons.append(reason)

    def _refuse_names(self, statement: ast.stmt) -> None:
        for part in walk(statement):
            if isinstance(part, ast.Name) and self.env.get(part.id, NumberKind.SIZE) is not NumberKind.SIZE:
                self._refuse(f"`{part.id}` is used in `{speculation.short(statement)}`")
                return
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
                self.env.pop(part.id, None)


def _together(kinds: Sequence[NumberKind | None]) -> NumberKind | None:
    """What holds for one of several values; None where not all of them are integers."""
    if not kinds or not all(kind in INTEGERS for kind in kinds):
        return None
    return kinds[0] if len(set(kinds)) == 1 else NumberKind.EITHER


def _joined(first: Env, second: Env) -> Env:
    joined: Env = {}
    for name in first.keys() | second.keys():
        kinds = {first.get(name), second.get(name)}
        if len(kinds) == 1:
            joined[name] = first[name]
        elif kinds <= INTEGERS:
            joined[name] = NumberKind.EITHER
        elif kinds != {None, NumberKind.SIZE}:
            joined[name] = NumberKind.MIXED
    return joined


class _Exchanged(ast.NodeTransformer):
    """Puts the text of changes in the place of the nodes that they are about, by position."""

    def __init__(self, changes: Mapping[int, tuple[ast.expr, str]]) -> None:
        self._texts = {(node.lineno, node.col_offset, node.end_col_offset): text for node, text in changes.values()}

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        text = self._texts.get((node.lineno, node.col_offset, node.end_col_offset))
        return node if text is None else ast.parse(text, mode="eval").body
