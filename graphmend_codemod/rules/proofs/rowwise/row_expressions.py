"""Expressions that read rows: what each holds; see `row_functions`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import has_stars, written_integer
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.proofs.rowwise.row_values import (
    ARITHMETIC,
    ELEMENTWISE,
    NUMBER,
    OTHER,
    Held,
    NotRowwise,
    What,
    calculated,
    compared,
    constant,
    decision,
    elementwise,
    indexed,
    joined,
    operator,
    opposite,
    spelling,
)

_DIVIDES = frozenset("floor_divide remainder fmod".split())

SOME = "a row is chosen"
"""Stands among what names hold where at least one row was chosen."""

_PYTHON = frozenset("abs bool float int len max min pow round str sum".split())
_OF_ROWS = frozenset({"dtype", "device", "is_cuda"})


class RowExpressions:
    """What expressions hold, given what names do. `qualify` resolves what the top level of the module binds.

    `looked` are expressions that depend on how many dimensions a row has, `conditions` what has to hold while tracing.
    `ranged` are calls that raise where an index is out of range, and eager mode may go on for want of rows. With
    `skips`, eager mode does nothing of what is looked at where no row is chosen.
    """

    skips = False

    def __init__(self, qualify: Callable[[ast.expr], str | None], conditions: dict[str, None]) -> None:
        self.qualify, self.conditions = qualify, conditions
        self.env: dict[str, Held] = {}
        self.looked: list[ast.expr] = []
        self.ranged: list[ast.expr] = []

    def qualified(self, node: ast.expr) -> str | None:
        """The qualified name of what an expression spells at the top level of the module; None where there is none."""
        return self.qualify(node)

    def value(self, node: ast.expr) -> Held:
        """What an expression holds; NotRowwise if it may mix rows."""
        if isinstance(node, ast.Constant):
            return constant(node.value)
        if isinstance(node, ast.Name):
            return self.env[node.id] if node.id in self.env else self.outside(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript):
            return self.subscript(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, (ast.Tuple, ast.List)):
            return Held(What.TUPLE, parts=tuple(map(self.value, node.elts)))
        if isinstance(node, ast.IfExp):
            return self._choice(node)
        return self._operation(node)

    def outside(self, node: ast.expr) -> Held:
        """What a name or attribute holds that the function neither gets nor binds."""
        known = self.qualified(node) or ""
        return NUMBER if known.startswith(("torch.", "math.", "numpy.")) else OTHER

    def _choice(self, node: ast.IfExp) -> Held:
        test = self.value(node.test)
        if test.what is not What.NUMBER:
            raise NotRowwise(f"`{short(node.test)}` branches on the values of the selected rows")
        if test.known:
            return self.value(node.body if test.constant else node.orelse)
        return joined(self.value(node.body), self.value(node.orelse))

    def _operation(self, node: ast.expr) -> Held:
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BinOp):
            held = [self.value(node.left), self.value(node.right)]
            bits = isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)) and all(each.boolean for each in held)
            if isinstance(node.op, ast.MatMult) and any(each.what is What.ROWS for each in held):
                raise NotRowwise(f"`{short(node)}` multiplies matrices")
            if isinstance(node.op, (ast.BitAnd, ast.BitOr)) and all(each.what is What.DECIDES for each in held):
                return decision(held, either=isinstance(node.op, ast.BitOr))
            self.divided(node.op, held, node)
            return self.combined(held, node, boolean=bits)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.BoolOp):
            return self._test(node)
        return self.unread(node)

    def as_number(self, held: Held) -> Held:
        """What stands beside rows, which has to be a number."""
        return held

    def unread(self, node: ast.expr) -> Held:
        """What any other expression holds, which may not read rows."""
        self.demand_no_effect(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and self.env.get(part.id, OTHER).what not in {What.NUMBER, What.OTHER}:
                raise NotRowwise(f"`{short(node)}` may depend on the number of selected rows")
        return OTHER

    def combined(self, held: list[Held], node: ast.expr, *, boolean: bool = False) -> Held:
        """An elementwise operation on rows and numbers, or one that rows do not enter."""
        if any(each.what in {What.ROWS, What.DECIDES, What.SHAPE} for each in held):
            return elementwise([self.as_number(each) for each in held], short(node), boolean=boolean)
        if all(each.what is What.NUMBER for each in held):
            return self._calculated(held, node)
        open_questions = all(each.what is What.NUMBER or each.spelled or each.parts for each in held)
        return Held(What.OTHER, parts=tuple(held)) if open_questions else OTHER

    def _calculated(self, held: list[Held], node: ast.expr) -> Held:
        """A number made of numbers, and how the function of the site spells it."""
        texts = list(map(spelling, held))
        known = calculated(node, held)
        plain = isinstance(node, ast.Compare) or (
            isinstance(node, (ast.BinOp, ast.UnaryOp)) and type(node.op) in {*ARITHMETIC, ast.USub}
        )
        if known.known or not plain or not all(texts):
            return known
        given = [ast.parse(text, mode="eval").body for text in texts]
        made: ast.expr
        if isinstance(node, ast.BinOp):
            made = ast.BinOp(given[0], node.op, given[1])
        elif isinstance(node, ast.UnaryOp):
            made = ast.UnaryOp(node.op, given[0])
        else:
            assert isinstance(node, ast.Compare)
            made = ast.Compare(given[0], node.ops, given[1:])
        return NUMBER._replace(spelled=ast.unparse(made))

    def divided(self, sign: ast.operator, held: list[Held], node: ast.expr) -> None:
        """Ask that no integer is divided by the zeros that stand in where no row is chosen.

        `//` has no derivative, of which eager mode does not complain where it skips the work.
        """
        if self.skips and isinstance(sign, ast.FloorDiv) and any(each.what is What.ROWS for each in held):
            raise NotRowwise(f"`{short(node)}` has no derivative, and eager mode skips it where no row is selected")
        if not isinstance(sign, (ast.FloorDiv, ast.Mod)) or held[1].what is not What.ROWS or SOME in self.env:
            return
        named = next((each.spelled for each in held if each.what is What.ROWS and each.spelled), "")
        if not named:
            raise NotRowwise(f"`{short(node)}` may divide integers by zero where no row is selected")
        self.conditions[f"{named}.is_floating_point()"] = None

    def _unary(self, node: ast.UnaryOp) -> Held:
        held = self.value(node.operand)
        if held.what is What.DECIDES and isinstance(node.op, (ast.Not, ast.Invert)):
            return opposite(held)
        if not isinstance(node.op, ast.Not):
            return held._replace(spelled="", zero=False) if held.what is What.ROWS else self.combined([held], node)
        if held.what is What.ROWS:
            raise NotRowwise(f"`{short(node)}` branches on the values of the selected rows")
        if held.known:
            return constant(not held.constant)
        return held._replace(spelled=f"not {held.spelled}" if held.spelled else "", constant=OTHER.constant)

    def _comparison(self, node: ast.Compare) -> Held:
        held = [self.value(each) for each in (node.left, *node.comparators)]
        kinds = {each.what for each in held}
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and len(held) == 2 and held[1].known:
            same = held[0].what is What.NUMBER and held[0].constant is held[1].constant
            if held[0].what is What.ROWS or held[0].known:
                return constant(same is isinstance(node.ops[0], ast.Is))
        if What.DECIDES in kinds and kinds <= {What.DECIDES, What.NUMBER}:
            falsy, truthy = compared(held[0], node.ops[0], held[1]) if len(held) == 2 else (None, None)
            return Held(What.DECIDES, falsy=falsy, truthy=truthy)
        if What.ROWS in kinds and (len(held) > 2 or isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))):
            raise NotRowwise(f"`{short(node)}` branches on the values of the selected rows")
        if What.ROWS in kinds and kinds <= {What.ROWS, What.NUMBER}:
            falsy, truthy = compared(held[0], node.ops[0], held[1])
            return self.combined(held, node, boolean=True)._replace(falsy=falsy, truthy=truthy)
        return self.combined(held, node, boolean=True)

    def _test(self, node: ast.BoolOp) -> Held:
        """`a or b`: the first is worked out in any case."""
        held = []
        for each in node.values:
            held.append(self.value(each))
            if held[-1].known and bool(held[-1].constant) is isinstance(node.op, ast.Or):
                return held[-1] if len(held) == 1 else self._mixed(held, node)
            if len(held) == 1 and len(node.values) > 1:
                before = dict(self.env)
        self.env = before
        return self._mixed(held, node)

    def _mixed(self, held: list[Held], node: ast.BoolOp) -> Held:
        kinds = {each.what for each in held}
        if kinds <= {What.DECIDES, What.NUMBER}:
            return decision(held, either=isinstance(node.op, ast.Or)) if What.DECIDES in kinds else NUMBER
        if kinds & {What.ROWS, What.SHAPE, What.DECIDES}:
            raise NotRowwise(f"`{short(node)}` branches on the values of the selected rows")
        return OTHER

    def _attribute(self, node: ast.Attribute) -> Held:
        name = dotted(node)
        root = name.partition(".")[0] if name else ""
        if name and root not in self.env:
            return NUMBER if node.attr in {"dtype", "device"} else self.outside(node)
        held = self.value(node.value)
        if held.what is not What.ROWS:
            return held if held.what in {What.NUMBER, What.OTHER} else self.unread(node)
        self.looked.append(node)
        if node.attr == "shape":
            return Held(What.SHAPE, held.rank, spelled=held.spelled)
        if node.attr == "ndim":
            return constant(held.rank)
        if node.attr in _OF_ROWS:
            return NUMBER
        raise NotRowwise(f"`{short(node)}` may depend on the number of selected rows")

    def subscript(self, node: ast.Subscript) -> Held:
        """`x[..., 0]` of rows, `x.shape[-1]`."""
        held = self.value(node.value)
        if held.what is What.ROWS:
            return self._part(held, node)
        number = written_integer(node.slice)
        if held.what is What.SHAPE:
            if number is not None and 0 < (number + held.rank if number < 0 else number) < held.rank:
                last = number if number < 0 else number - held.rank
                return NUMBER._replace(spelled=f"{held.spelled}.shape[{last}]" if held.spelled else "")
            raise NotRowwise(f"`{short(node)}` may be the number of selected rows")
        if held.what is What.TUPLE and number is not None and -len(held.parts) <= number < len(held.parts):
            return held.parts[number]
        return self.unread(node)

    def _part(self, held: Held, node: ast.Subscript) -> Held:
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        self.looked.append(node)
        for part in parts:
            bounds = [part.lower, part.upper, part.step] if isinstance(part, ast.Slice) else []
            if any(self.value(each).what is not What.NUMBER for each in bounds if each is not None):
                raise NotRowwise(f"`{short(node)}` has a bound that may not be a number")
        try:
            return indexed(held, parts)
        except NotRowwise as why:
            raise NotRowwise(f"`{short(node)}` may not process each row independently: {why}") from None

    def call(self, node: ast.Call) -> Held:
        """A call of a function of torch, of Python, or of this module."""
        if has_stars(node):
            return self.unread(node)
        qualified = None if (dotted(node.func) or "").partition(".")[0] in self.env else self.qualified(node.func)
        if qualified in torch_api.COMPILING_PREDICATES and not node.args:
            return constant(True)  # only a compile path is looked at
        if qualified in {"torch.is_tensor", "builtins.isinstance"} and node.args:
            return self._asks_for_tensor(node)
        given = [self.value(each) for each in node.args]
        words = {word.arg: self.value(word.value) for word in node.keywords if word.arg is not None}
        name = torch_api.torch_function(qualified)
        if name is None and qualified is None and isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            if owner.what is What.ROWS:
                return self._method(node, owner, given, words)
            if node.func.attr == "expand_as" and len(given) == 1 and given[0].what is What.ROWS and not words:
                return self.repeated(node, node.func.value, given[0])
        all_given = [*given, *words.values()]
        if name is not None and given and self.enter(all_given):
            return self.operator(node, name, given[0], given[1:], words)
        if not self.enter(all_given):
            return self.without_rows(node, qualified, all_given)
        words = {name: self.as_number(each) for name, each in words.items()}
        return self.followed(node, [self.as_number(each) for each in given], words)

    def enter(self, held: Sequence[Held]) -> bool:
        """True when rows, or what says something of all of them, are among what is held."""
        return any(
            each.what in {What.ROWS, What.DECIDES, What.SHAPE} or (each.parts and self.enter(each.parts))
            for each in held
        )

    def operator(self, node: ast.Call, name: str, first: Held, rest: list[Held], words: dict[str, Held]) -> Held:
        """What an operator of torch gives, `first` among its arguments."""
        rest = [self.as_number(each) for each in rest]
        words = {word: self.as_number(each) for word, each in words.items()}
        if name.rstrip("_") not in ELEMENTWISE:
            self.looked.append(node)
        held = operator(name, self.as_number(first), rest, words, node, short(node))
        if held.what is What.DECIDES and name in {"min", "max", "amin", "amax"} and not self.skips:
            self.env[SOME] = NUMBER  # of no rows there is none, and eager mode raises
        if name in {"gather", "take_along_dim"} and SOME not in self.env:
            self.ranged.append(node)
        if rest and (name.rstrip("_") in _DIVIDES or "rounding_mode" in words):
            sign = ast.FloorDiv() if name.rstrip("_") == "floor_divide" else ast.Mod()
            self.divided(sign, [first, rest[0]], node)
        return held

    def without_rows(self, node: ast.Call, qualified: str | None, given: list[Held]) -> Held:
        """What a call gives that gets no rows."""
        known = qualified or ""
        pure = known.startswith("math.") or known.removeprefix("builtins.") in _PYTHON
        pure = pure or (known.startswith("numpy.") and "random" not in known)
        return NUMBER if pure and all(each.what is What.NUMBER for each in given) else self.unread(node)

    def demand_no_effect(self, node: ast.expr) -> None:
        """NotRowwise for what does more than compute, where eager mode may skip it for want of rows."""
        for part in ast.walk(node) if self.skips else ():
            if isinstance(part, ast.Call):
                known = self.qualified(part.func) or ""
                pure = known.startswith("math.") or known.removeprefix("builtins.") in _PYTHON
                made = torch_api.torch_function(known) in torch_api.CREATION
                written = any(word.arg in {"out", None} for word in part.keywords)
            elif not isinstance(part, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
                continue
            if not isinstance(part, ast.Call) or written or not (pure or made):
                text = short(part) if isinstance(part, ast.expr) else short(node)
                raise NotRowwise(f"`{text}` may have side effects, and eager mode skips it where no row is selected")

    def _method(self, node: ast.Call, owner: Held, given: list[Held], words: dict[str, Held]) -> Held:
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        if name in {"dim", "size"}:
            self.looked.append(node)
        if name == "dim" and not given:
            return constant(owner.rank)
        if name == "size" and not words:
            number = written_integer(node.args[0]) if node.args else None
            if not node.args:
                return Held(What.SHAPE, owner.rank, spelled=owner.spelled)
            if number is not None and 0 < (number + owner.rank if number < 0 else number) < owner.rank:
                return NUMBER
        return self.operator(node, name, owner, given, words)

    def _asks_for_tensor(self, node: ast.Call) -> Held:
        held = self.value(node.args[0])
        named = "torch.Tensor" if len(node.args) == 1 else self.qualified(node.args[1])
        if named == "torch.Tensor" and held.what in {What.ROWS, What.NUMBER}:
            return constant(held.what is What.ROWS)
        return NUMBER if held.what is What.NUMBER else self.unread(node)

    def repeated(self, node: ast.Call, one: ast.expr, rows: Held) -> Held:
        """What `one.expand_as(rows)` gives, which is the same in each row."""
        raise NotRowwise(f"`{short(node)}` may not process each row independently")

    def followed(self, node: ast.Call, given: list[Held], words: dict[str, Held]) -> Held:
        """What a function of the module returns for these arguments."""
        raise NotRowwise(f"`{short(node)}` may not process each row independently")
