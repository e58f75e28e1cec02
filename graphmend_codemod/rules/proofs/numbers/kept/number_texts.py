"""Numbers that are read out of tensors, as expressions of 0-dim tensors (GM401)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.narrowing import rename_dtype
from graphmend_codemod.analysis.scope import dotted, of_kind, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.analysis.values import BOOL, ValueKind
from graphmend_codemod.rules.framework.conditions import names_in
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition_parts import OPPOSITES, number_of
from graphmend_codemod.rules.proofs.conditions.type_conditions import own_memory, tensor_facts, without_dimensions
from graphmend_codemod.rules.proofs.numbers.kept.chosen_numbers import moves
from graphmend_codemod.rules.proofs.numbers.kept.kept_operands import counts_bools, dotted_in, is_whole, keeps_dtype

SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_BOUNDS = {"builtins.max": (">", "min"), "builtins.min": ("<", "max")}
_FACTORIES = frozenset(
    """arange as_tensor empty eye from_numpy full linspace logspace ones rand randint randn randperm scalar_tensor
    tensor zeros""".split()
)
_FLOAT32 = "torch.float32"
_SMALL = frozenset({BOOL, *(f"torch.{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32))})
"""Dtypes of integers that float64 holds."""


class Number(NamedTuple):
    """The text of a number; `live` where it is a tensor of float64, `nonzero` where it is certainly not 0.

    `wide` are the tensors before the statements, and the numbers of Python, of which it may be an integer that float64
    does not hold; "1" among them stands for one of which nothing can be asked.
    """

    text: str
    live: bool
    nonzero: bool = False
    tight: bool = True
    wide: frozenset[str] = frozenset()

    @property
    def operand(self) -> str:
        """The text as an operand of any operator, or what a method is called of."""
        return self.text if self.tight else f"({self.text})"


class NumberTexts:
    """What numbers are in the compile path of some statements, and what its header asks.

    `numbers` are the names that hold one, true where it is certainly not 0, `wide` as in `Number`; `counters` those
    among them that are integers which the compile path counts; `bound` what the statements bind; `anchor` a tensor that
    is read. `beside` are tensors that meet a number, `checks` say that no divisor of the statement at hand is 0, and
    `made` has the tensors that the statements compute; `computed` is what they bind, with what it is bound to, or None,
    and `carried` what the loop around binds.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.numbers: dict[str, bool] = {}
        self.wide: dict[str, frozenset[str]] = {}
        self.counters: set[str] = set()
        self.facts: dict[str, None] = {}
        self.bound: set[str] = set()
        self.narrow: dict[str, None] = {}
        self.anchor: str | None = None
        self.checks: dict[str, None] = {}
        self.beside: dict[str, None] = {}
        self.made: dict[str, tuple[Site, ast.expr]] = {}
        self.carried: set[str] = set()
        self.computed: list[tuple[str, Site, ast.expr | None]] = []

    def ask(self, fact: str) -> None:
        """Ask for something in the header; NotProven where it names what the statements bind themselves."""
        inside = names_in([fact]) & self.bound
        if len(inside) == 1 and (made := self.made.get(next(iter(inside)))) is not None:
            for each in tensor_facts(*made):
                self.ask(each)
        elif inside:
            raise NotProven(f"`{fact}` would have to be asked before the statement; convert it first: `.float()`")
        else:
            self.facts[fact] = None

    def ask_numbers(self, there: Site, node: ast.expr) -> None:
        """Ask that the names and attributes of Python in an expression hold numbers."""
        if number_of(there, node) is not None:
            return
        if isinstance(node, (ast.Name, ast.Attribute)) and (text := dotted(node)) is not None:
            if text not in self.numbers and there.value(node).kind is not ValueKind.TENSOR:
                self.ask(f"isinstance({text}, (int, float))")
            return
        inside = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
        for part in inside:
            if isinstance(part, ast.expr):
                self.ask_numbers(there, part)

    def _computed_anew(self, changes: Sequence[tuple[str, str]]) -> Env:
        """What the statements bind, where dtypes have the names that `changes` give them."""
        found: Env = {}
        for name, there, value in self.computed:
            env = dict(there.place.env)
            for change in changes:
                rename_dtype(env, *change)
            if value is not None and name not in self.carried:
                found[name] = there.evaluator.value(value, env | found)
            else:
                found.pop(name, None)
        return found

    def is_tensor_before(self, text: str) -> bool:
        """True for a name or attribute that is a tensor where the compile path begins, and holds the same still."""
        if text.partition(".")[0] in self.bound:
            return False
        return self.site.value(ast.parse(text, mode="eval").body).is_tensor

    def test(self, there: Site, node: ast.expr) -> tuple[str, str] | None:
        """The text of `n > 0`, and the name that is certainly not 0 where that holds, or nothing."""
        if not isinstance(node, ast.Compare) or len(node.ops) != 1 or type(node.ops[0]) not in OPPOSITES:
            return None
        left, right = self.number(there, node.left), self.number(there, node.comparators[0])
        if left is None or right is None or not (left.live or right.live):
            return None
        self.ask_numbers(there, node)
        self._demand_exact(node, left, right)
        sign = OPPOSITES[type(node.ops[0])][0]
        zero = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value == 0
        positive = node.left.id if isinstance(node.left, ast.Name) and zero and sign in {">", "!="} else ""
        return f"{left.operand} {sign} {right.operand}", positive

    def conditions(self, statements: Sequence[ast.stmt]) -> list[str]:
        """What the header asks; NotProven where a tensor of the statements may be on another device."""
        torch, found = self.site.torch, dict[str, None]()
        for statement in statements:
            for part in walk(statement):
                if moves(self.site, part) or (isinstance(part, ast.Call) and self._makes(part)):
                    raise NotProven(f"`{short(part)}` may be on another device than the number")
            found |= dict.fromkeys(each for each in _unconditional(statement) if self._is_beside(each))
        found |= self.beside
        names = [each for each in found if each != self.anchor]
        known = {each: self.site.value(ast.parse(each, mode="eval").body) for each in found}
        facts = [f"isinstance({each}, {torch}.Tensor)" for each, value in known.items() if value.hint]
        facts += [f"{each}.dtype == {torch}.float32" for each in self.narrow]
        facts += [f"{each}.device == {self.anchor}.device" for each in names]
        facts.append(f'{self.anchor}.device.type != "mps"')  # which has no float64
        self._demand_kept_attributes(statements, [*facts, *self.facts])
        told = [text.format(each) for each in self.narrow for text in ("{}.is_floating_point()", "not {}.is_complex()")]
        told += [f"not {each.removesuffix('.is_floating_point()')}.is_complex()" for each in self.facts]
        tensors = [each for each in self.facts if each.endswith(".Tensor)")]
        return [*tensors, *facts, *(each for each in self.facts if each not in tensors and each not in told)]

    def _demand_kept_attributes(self, statements: Sequence[ast.stmt], facts: Sequence[str]) -> None:
        """NotProven where a statement assigns to an attribute of which something is asked in front of all of them."""
        parts = [part for statement in statements for part in walk(statement) if isinstance(part, ast.Attribute)]
        stored = {dotted(part) for part in parts if part.ctx.__class__ is not ast.Load}
        asked = (text for fact in facts for text in dotted_in(ast.parse(fact, mode="eval")))
        for text in (each for each in asked if stored and not stored.isdisjoint(_prefixes(each))):
            raise NotProven(f"`{text}` is assigned to between the number and its use")

    def _is_beside(self, text: str) -> bool:
        own = {text.partition(".")[0]}
        return self.site.value(ast.parse(text, mode="eval").body).is_tensor and own.isdisjoint(self.counters)

    def _makes(self, call: ast.Call) -> bool:
        """True for `torch.zeros(n)`, which is on the CPU."""
        on = any(word.arg == "device" for word in call.keywords)
        return not on and torch_function(self.site.resolve(call.func)) in _FACTORIES

    def number(self, there: Site, node: ast.expr) -> Number | None:
        """The number that an expression is, of numbers that are kept and of those of Python; None for any other."""
        if isinstance(node, ast.Constant):
            known = type(node.value) in (int, float)
            return Number(repr(node.value), live=False, nonzero=node.value != 0) if known else None
        if isinstance(node, ast.Name) and node.id in self.numbers:
            text = f"{node.id}.double()" if node.id in self.counters else node.id
            return Number(text, live=True, nonzero=self.numbers[node.id], wide=self.wide.get(node.id, frozenset()))
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.of_python(there, node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.number(there, node.operand)
            return inner and Number(f"-{inner.operand}", inner.live, inner.nonzero, tight=False, wide=inner.wide)
        if isinstance(node, ast.BinOp):
            return self._computed(there, node)
        return self._called(there, node) if isinstance(node, ast.Call) and not node.keywords else None

    def of_python(self, there: Site, node: ast.expr) -> Number | None:
        text = dotted(node)
        if text is None or text.partition(".")[0] in self.bound or there.value(node).kind is ValueKind.TENSOR:
            return None
        own = text.partition(".")[0] == there.evaluator.scope.self_name
        return Number(text, live=False, wide=frozenset([text])) if own or isinstance(node, ast.Name) else None

    def _computed(self, there: Site, node: ast.BinOp) -> Number | None:
        sides = self.number(there, node.left), self.number(there, node.right)
        left, right = sides
        if left is None or right is None or type(node.op) not in SIGNS:
            return None
        divides = isinstance(node.op, ast.Div)
        if divides and (left.live or right.live) and not right.nonzero:
            self.checks[f"{right.operand} != 0"] = None
        if left.live or right.live:
            self.ask_numbers(there, node.left)
            self.ask_numbers(there, node.right)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            self._demand_exact(node, left, right)
        text = f"{left.operand} {SIGNS[type(node.op)]} {right.operand}"
        wide = frozenset() if divides else left.wide | right.wide
        return Number(text, left.live or right.live, nonzero=False, tight=False, wide=wide)

    def _demand_exact(self, node: ast.expr, left: Number, right: Number) -> None:
        """Ask for floating dtypes where the difference of two integers of 64 bits would be that of their float64."""
        wide = [each for each in (left, right) if each.live] if left.wide and right.wide else []
        for each in (each for one in wide for each in sorted(one.wide)):
            if not self.is_tensor_before(each):
                raise NotProven(f"`{short(node)}` may be of integers that float64 does not hold")
            self.ask(f"{each}.is_floating_point()")

    def _called(self, there: Site, node: ast.Call) -> Number | None:
        """`t.item()`, `max(n, 1)`, `float(n)`."""
        called = there.resolve(node.func)
        if (tensor := number_of(there, node)) is not None:
            return self._read(there, node, tensor)
        given = [self.number(there, each) for each in node.args]
        if called == "builtins.float" and len(given) == 1:
            return given[0] if given[0] is not None and given[0].live else None
        if called not in _BOUNDS or len(given) != 2:
            return None
        first, second = given
        if first is None or second is None or not (first.live or second.live):
            return None
        for each in node.args:
            self.ask_numbers(there, each)
        sign, word = _BOUNDS[called]
        numbers = (each.value for each in of_kind(node.args, ast.Constant))
        positive = sign == ">" and any(isinstance(each, (int, float)) and each > 0 for each in numbers)
        wide = first.wide | second.wide
        if not second.live:
            return Number(f"{first.operand}.clamp({word}={second.text})", live=True, nonzero=positive, wide=wide)
        # Python keeps the first of two numbers where one is nan.
        text = f"{self.site.torch}.where({second.operand} {sign} {first.operand}, {second.text}, {first.text})"
        return Number(text, live=True, nonzero=positive, wide=wide)

    def _read(self, there: Site, node: ast.expr, tensor: ast.expr) -> Number:
        value = there.value(tensor)
        if (
            value.dtype == BOOL
            or (not keeps_dtype(there, node, tensor) and self._is_cut_off(there, node, tensor))
            or (value.dtype or "").startswith("torch.complex")
        ):
            raise NotProven(f"`{short(node)}` changes the number")
        names = self._before(tensor)
        if not names and self.anchor is None:
            raise NotProven(f"`{short(node)}` reads no tensor that has a name before the statement")
        self.anchor = self.anchor or names[0]
        for fact in tensor_facts(there, tensor):
            self.ask(fact)
        if not value.is_floating and not is_whole(there, tensor):
            if not names:
                raise NotProven(f"cannot infer the dtype of `{short(tensor)}`")
            # A complex number is none of float64.
            for each in names:
                self.ask(f"not {each}.is_complex()")
        cut = ".detach()" if value.grad and not there.no_grad else ""
        # What is of float64 already is not copied by `double()`.
        text = f"{own_memory(there, tensor, without_dimensions(there, tensor) + cut)}.double()"
        small = value.is_floating or value.dtype in _SMALL or counts_bools(there, tensor)
        known = not names or (value.dtype or "").startswith("torch.") or is_whole(there, tensor)
        wide = frozenset() if small else frozenset(["1"] if known else names)
        return Number(text, live=True, wide=wide)

    def _before(self, node: ast.expr) -> list[str]:
        """The tensors from before that an expression reads, or what the statements compute for it."""
        read = list(dotted_in(node))
        made = [each for name in read if name in self.made for each in self._before(self.made[name][1])]
        return [*(each for each in read if self.is_tensor_before(each)), *made]

    def _is_cut_off(self, there: Site, node: ast.expr, tensor: ast.expr) -> bool:
        """True for `int(t)`, but not for `float(t)`: a float64 holds all that a tensor of numbers does."""
        inside = {id(part) for part in walk(tensor)}
        calls = (part for part in walk(node) if isinstance(part, ast.Call) and id(part) not in inside)
        return any(there.resolve(call.func) == "builtins.int" for call in calls)

    def uses(self, there: Site, node: ast.AST) -> Iterator[tuple[ast.expr, Number]]:
        """Expressions that are numbers kept as tensors, but for parts of such."""
        number = self.number(there, node) if isinstance(node, ast.expr) else None
        if number is not None and number.live:
            assert isinstance(node, ast.expr)
            yield node, number
            return
        for part in ast.iter_child_nodes(node):
            yield from self.uses(there, part)

    def demand_float32(self, there: Site, node: ast.expr) -> None:
        """Ask for the dtypes that make a tensor one of float32."""
        before = self.site.place.env
        # An autocast computes in half precision whatever the dtype of what it is given.
        options = [name for name, value in before.items() if value.is_tensor and name.isidentifier()]
        used = [name for name in options if not (before[name].dtype or "").startswith("torch.")]
        wanted = [each for each in dotted_in(node) if each in used]
        for names in ([], *([each] for each in wanted), wanted, *([each] for each in used), used):
            env = dict(there.place.env)
            changes = [(before[name].dtype or "", _FLOAT32) for name in names]
            for change in changes:
                rename_dtype(env, *change)
            env |= self._computed_anew(changes)
            if _is_float32(there.with_env(env), node):
                self.narrow |= dict.fromkeys(names)
                self.beside |= dict.fromkeys(each for each in dotted_in(node) if self.is_tensor_before(each))
                for fact in tensor_facts(there, node):
                    self.ask(fact)
                return
        raise NotProven(f"the other side of `{short(node)}` may have a different dtype; convert it first: `.float()`")


def _is_float32(site: Site, node: ast.expr) -> bool:
    """True for a tensor of float32, and for a loss of one, which is in float32 at least."""
    name, given = site.operation(node) if isinstance(node, ast.Call) else ("", [])
    loss = name in torch_api.RETURNS_TENSOR and (name.endswith("_loss") or "cross_entropy" in name) and bool(given)
    return site.value(given[0] if loss else node).dtype == _FLOAT32


def _prefixes(text: str) -> set[str]:
    """`self`, `self.a` and `self.a.dtype` for `self.a.dtype`."""
    parts = text.split(".")
    return {".".join(parts[:count]) for count in range(1, len(parts) + 1)}


def _unconditional(node: ast.AST) -> Iterator[str]:
    """What a statement reads in any case."""
    inside = node.body if isinstance(node, ast.For) else ()
    for part in inside:
        yield from _unconditional(part)
    if not hasattr(node, "body"):
        yield from dotted_in(node)
