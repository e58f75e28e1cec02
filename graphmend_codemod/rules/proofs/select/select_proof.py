"""Whether a select means the same as the branches that it stands for, and under which trace-time conditions.

A select computes what eager mode may skip, gives every name a new tensor, and joins dtypes and shapes in silence. So
all values must be free of effects and unable to raise, have one dtype and one shape, and no tensor that a branch
leaves alone may be written in place afterwards. What the source does not prove becomes a condition of the compile
path, which Dynamo folds while it traces.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TypeVar

from graphmend_codemod.analysis import shape_needs, speculation
from graphmend_codemod.analysis.hazards import FREE
from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.narrowing import narrow, rename_dtype
from graphmend_codemod.analysis.patterns import all_names, same, stored_names
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.analysis.values import SCALAR, Origin, Value, ValueKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.proofs.memory.identity import asked_of_names, layout_asked_of_names, shown_names
from graphmend_codemod.rules.proofs.memory.later_writes import demand_no_later_write
from graphmend_codemod.rules.proofs.select.assumptions import Assumption, Facts, equate, is_dotted
from graphmend_codemod.rules.proofs.select.gradient_sources import gradient_leaves, is_finite_source, read_values
from graphmend_codemod.rules.proofs.select.selection import VALUE, Assignment, Branch, Selection

J = TypeVar("J", bound="SelectProof")
_ROUNDS = 6
_MAY_RAISE = "what a branch computes may raise for some shapes where eager mode skips it"
_NAMELESS = {VALUE: "the conditional expression", "the result": "the returned value"}
_NUMBERS = frozenset({Origin.CONFIG, Origin.OTHER})


class ResultsDiffer(NotProven):
    """What is known of the values forbids a select of them: to compute them first and compare them helps nothing."""


def judge(selection: Selection) -> Facts:
    """The facts under which the select means the same; NotProven if there are none."""
    return judged(selection, SelectProof).result()


def judged(selection: Selection, judging: Callable[[Selection, tuple[Assumption, ...]], J]) -> J:
    """What judges the selection, `judging` some assumptions, once these are enough; NotProven if none are."""
    assumed: tuple[Assumption, ...] = ()
    for _ in range(_ROUNDS):
        attempt = judging(selection, assumed)
        needs = attempt.run()
        if not needs:
            return attempt
        assumed += needs
    raise NotProven("cannot infer the dtypes and shapes of the values in its branches")


class SelectProof:
    """Judges all branches under some assumptions."""

    def __init__(self, selection: Selection, assumed: tuple[Assumption, ...]) -> None:
        self.selection, self.site, self.assumed = selection, selection.site, assumed
        self.hazards = FREE
        self.aliasing = False
        self.other_leaves = False
        self.kept: list[ast.expr] = []
        self.handed_on: set[str] = set()  # names whose tensors other names refer to behind the branches
        self.cut: set[tuple[int, str]] = set()
        self.endless = False
        self.needs: dict[Assumption, None] = {}
        self.shapes: list[str] = []
        self.named: list[str] = []

    def run(self) -> tuple[Assumption, ...]:
        """Judge; returns what has to be assumed as well for the answer to hold."""
        results: dict[str, list[tuple[ast.expr, Value]]] = {name: [] for name in self.selection.names}
        for position, arm in enumerate(self.selection.arms):
            self._judge_condition(position, arm)
            env = self._assume(arm.env)
            for number, item in enumerate(arm.assignments):
                needed = self.hazards.needs_shapes
                self.judge_value(position, item, env)
                bound = {each.name for each in arm.assignments[:number]}
                if any(shape_needs.names_in(each) & bound for each in self.hazards.needs_shapes - needed):
                    raise NotProven(_MAY_RAISE)
                value = self.site.evaluator.value(item.value, env)
                env[item.name] = value._replace(roots=self.site.roots(item.value, env))
            for name, branches in results.items():
                held = env.get(name)
                if held is None or not held.is_tensor:
                    raise self._no_tensor(name, held)
                branches.append((self.selection.value_of(arm, name), held))
        if self.hazards.impure:
            raise NotProven(self.hazards.impure)
        for text in sorted(self.floating()):
            self._need(Assumption("floating", self._tensor_of(text)))
        asked = [(each.shape, self._asked_of_shape(each)) for each in shape_needs.in_order(self.hazards.needs_shapes)]
        self.shapes = [text for shape, text in asked if shape != shape_needs.NAMED]
        self.named = [text for shape, text in asked if shape == shape_needs.NAMED]
        if self.named and self.site.scripted:
            raise NotProven(_MAY_RAISE)  # TorchScript knows no generators
        for name, found in results.items():
            self._compare(name, found)
            self._judge_sources(name)
        needs = tuple(need for need in self.needs if need not in self.assumed)
        # What is known of names may be enough for what is computed of them.
        needs = tuple(need for need in needs if is_dotted(need.one)) or needs
        computed = next((need.one for need in needs if not is_dotted(need.one)), None)
        if computed is not None:
            raise ResultsDiffer(f"cannot infer the dtype of `{computed}`; assign it to a variable before the branch")
        if self.hazards.raises and not needs:
            raise NotProven(f"{self.hazards.raises} where eager mode skips it")
        return needs

    def _judge_condition(self, position: int, arm: Branch) -> None:
        if arm.condition is None:
            return
        if arm.condition.skipped is not None:
            raise NotProven(arm.condition.skipped)
        # The first test runs in eager mode, too.
        self.hazards = self.hazards & arm.condition.hazards._replace(raises=None)
        if position:
            env = self._assume(dict(self.site.place.env))
            for tensor in arm.condition.tensors:
                found = speculation.judge(self.site.evaluator, tensor, env).unconditional
                self.hazards = self.hazards & found._replace(finite=True)

    def judge_value(self, position: int, item: Assignment, env: Env) -> None:
        found = speculation.judge(self.site.evaluator, item.value, env)
        self.hazards = self.hazards & found._replace(finite=True)
        if found.finite:
            return
        if item.name not in self.selection.names:
            self.endless = True
            return
        self.cut.add((position, item.name))
        for leaf in gradient_leaves(self.site, item.value, env):
            if not self.site.evaluator.value(leaf, env).is_floating:
                self._need(Assumption("floating", self.site.text(leaf)))

    def _judge_sources(self, name: str) -> None:
        """Look for tensors to which eager mode sends no gradient where the branch is not taken.

        A select sends zero, and what they were computed by may make nan of that: `h = x.sqrt()` above the branch.
        """
        read: list[set[str]] = []
        for arm in self.selection.arms:
            leaves = gradient_leaves(self.site, self.selection.value_of(arm, name), arm.env)
            read.append({leaf.id for leaf in leaves if isinstance(leaf, ast.Name)})
        for each in read[0].union(*read[1:]) - read[0].intersection(*read[1:]):
            if not is_finite_source(self.site, each, frozenset()):
                self.endless = True

    def _asked_of_shape(self, need: shape_needs.ShapeNeed) -> str:
        """The condition, of a tensor that has the shape before the branch."""
        asked = shape_needs.asked(need, self._assume(self.selection.arms[0].env))
        if asked is None:
            raise NotProven(_MAY_RAISE)
        return asked

    def _tensor_of(self, text: str) -> str:
        """`x` for `x[0]`, which has the same dtype."""
        node = ast.parse(text, mode="eval").body if "..." not in text else None
        env = self.selection.arms[0].env
        while isinstance(node, ast.Subscript) and self.site.evaluator.value(node.value, env).is_tensor:
            node = node.value
        return text if node is None else ast.unparse(node)

    def _need(self, assumption: Assumption) -> None:
        parsed = [ast.parse(text, mode="eval") for text in (assumption.one,) if "..." not in text]
        made = {item.name for item in self.selection.temporaries}
        if not parsed or any(isinstance(node, ast.Name) and node.id in made for node in ast.walk(parsed[0])):
            raise ResultsDiffer(
                f"cannot infer the dtype of `{assumption.one}` before the branch; convert it first: `.to(dtype)`"
            )
        self.needs[assumption] = None

    def _assume(self, env: Env) -> Env:
        env = {name: _without_layer_dtype(value) for name, value in env.items()}
        for what, one, other in self.assumed:
            value = self.site.evaluator.value(ast.parse(one, mode="eval").body, env)
            if value.kind is not ValueKind.TENSOR or value.dtype is None:
                raise ResultsDiffer(f"cannot infer the dtype of `{one}`; convert it first: `.to(dtype)`")
            if what == "floating":
                if value.dtype.startswith("torch.") and not value.is_floating:
                    raise NotProven(f"`{one}` is not floating point, and what is computed of it may raise")
                rename_dtype(env, value.dtype, f"float:{value.dtype}")
            else:
                equate(env, what, getattr(value, what), self._named(what, other, env))
        return env

    def _named(self, what: str, text: str, env: Env) -> str | None:
        if text.startswith("torch."):
            return text
        found: str | None = getattr(self.site.evaluator.value(ast.parse(text, mode="eval").body, env), what)
        return found

    def _no_tensor(self, name: str, value: Value | None) -> NotProven:
        what = _in_words(name)
        if value is not None and value.is_python:
            return ResultsDiffer(
                f"{what} is a Python value in one branch; `torch.where` would make it a tensor: assign one in both"
            )
        if value is not None and value.optional:
            return NotProven(f"{what} may be None")
        hint = "annotate what it is computed from: `x: torch.Tensor`"
        return NotProven(f"cannot infer that {what} is a Tensor in each branch; {hint}")

    def _compare(self, name: str, branches: list[tuple[ast.expr, Value]]) -> None:
        self.compare_form(name, branches)
        reached = [self.site.roots_of(value) for _, value in branches]
        if any(found != reached[0] for found in reached):
            self.other_leaves = True
        # That a layer makes a new tensor is a hint: `nn.Identity` may have taken its place.
        kept = [
            node
            for node, value in branches
            if isinstance(node, ast.Name) or value.hint or not self.site.is_fresh(value)
        ]
        self.kept += kept
        # Under no_grad a select would cut the graph of a tensor that was made outside.
        if kept and any(isinstance(parent, (ast.With, ast.AsyncWith)) for parent in self.site.place.parents):
            self.aliasing = True
        if any(not self._is_sole_owner(node, name) for node in kept):
            self.aliasing = True
        self.handed_on |= {node.id for node in kept if isinstance(node, ast.Name)}

    def floating(self) -> frozenset[str]:
        """The tensors of which a floating dtype is asked."""
        return self.hazards.needs_floating

    def compare_form(self, name: str, branches: list[tuple[ast.expr, Value]]) -> None:
        """Ask for one dtype and one shape where the values may have several; NotProven where no header can."""
        (first_node, first), *others = branches
        for node, value in others:
            if first.dtype != value.dtype:
                self._match_dtypes(name, (first_node, first), (node, value))
            elif first.shape != value.shape:
                self._need_equal("shape", name, first, value)

    def _is_sole_owner(self, node: ast.expr, name: str) -> bool:
        """True for a tensor that only `name` refers to behind the branches."""
        known = self.site.place.env.get(node.id) if isinstance(node, ast.Name) else None
        if known is None or known.hint or not isinstance(node, ast.Name) or not self.site.sole_owner(node.id):
            return False
        last = not self.site.live_after(node.id) and node.id not in self.handed_on
        return last or node.id == name

    def _match_dtypes(self, name: str, first: tuple[ast.expr, Value], second: tuple[ast.expr, Value]) -> None:
        if all(self._spelled("dtype", value.dtype) for value in (first[1], second[1])):
            self._need_equal("dtype", name, first[1], second[1])
            return
        names = sorted(self._names_in(first[0]) | self._names_in(second[0]))
        unknown = [each for each in names if Assumption("floating", each) not in self.assumed]
        for each in unknown:
            self._need(Assumption("floating", each))
        if unknown:
            return
        # Under autocast some functions of half precision return float32, as they do of float32 anywhere.
        asked = {each.one for each in self.assumed if each.what == "floating"}
        read = {getattr(each, "id", "") for node in (first[0], second[0]) for each in walk_in_layers(node)}
        exact = [Assumption("dtype", each, "torch.float32") for each in sorted(asked & read)]
        for need in exact:
            self._need(need)
        if set(exact) <= set(self.assumed):
            self._need_equal("dtype", name, first[1], second[1])

    def _need_equal(self, what: str, name: str, one: Value, other: Value) -> None:
        """Ask for one dtype or shape, in terms of names that have it before the branch."""
        spelled = [self._spelled(what, getattr(value, what)) for value in (one, other)]
        named = sorted((text for text in spelled if text), key=lambda text: text.startswith("torch."))
        need = Assumption(what, *named) if len(named) == 2 else None
        if need is None or need in self.assumed or named[0].startswith("torch.") or self._casts(need):
            raise ResultsDiffer(
                f"{_in_words(name)} may have a different {what} in each branch; give it one {what} in both"
            )
        self._need(need)

    def _casts(self, need: Assumption) -> bool:
        """True where a branch converts a tensor to the dtype that the header would have to ask of it."""
        values = (item.value for arm in self.selection.arms for item in arm.assignments)
        whole = None if "..." in need.one else ast.parse(need.one, mode="eval").body
        return need.other.startswith("torch.") and any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and whole is not None
            and same(node.func.value, whole)
            and self.site.value(node).dtype == need.other
            for value in values
            for node in walk_in_layers(value)
        )

    def _spelled(self, what: str, wanted: str | None) -> str | None:
        """What has this dtype or shape before the branch; dtypes of torch stand for themselves."""
        if wanted is None or wanted.startswith("torch."):
            return wanted
        if wanted == SCALAR:
            return None
        env = self._assume(self.selection.arms[0].env)
        found = (
            name
            for name, value in env.items()
            if value.is_tensor and getattr(value, what) == wanted and "." not in name
        )
        return next(found, None)

    def _names_in(self, node: ast.expr) -> frozenset[str]:
        env = self._assume(self.selection.arms[0].env)
        names = all_names(node)
        return frozenset(
            name for name in names if (value := env.get(name)) and value.is_tensor and not value.is_floating
        )

    def result(self) -> Facts:
        """The facts, in the order in which a reader wants them."""
        site, first = self.site, self.selection.arms[0].condition
        if (told := layout_asked_of_names(site, self.selection.names)) is not None:
            raise NotProven(f"`{told}` asks for strides, and those of `torch.where` may be others")
        if (told := asked_of_names(site, self.selection.names)) is not None:
            raise NotProven(f"`{told}` tells one tensor from another, and `torch.where` returns a new one")
        if self.aliasing:
            bound = stored_names(walk_in_layers(site.place.statement)) if VALUE in self.selection.names else ()
            demand_no_later_write(site, self.kept, [*self.selection.names, *bound])
        exact = {each.one for each in self.assumed if each.what == "dtype" and each.other.startswith("torch.")}
        assumed = [each for each in self.assumed if each.what != "floating" or each.one not in exact]
        # Shapes first: what is asked of `x[1]` takes for granted that there is one.
        conditions = [*self._types(), *self.shapes, *(assumption.text for assumption in assumed), *self.named]
        for arm in self.selection.arms:
            conditions.extend(arm.condition.facts if arm.condition else ())
        grads = any(value.grad for value in site.place.env.values() if value.is_tensor) and not site.no_grad
        if grads and (self.other_leaves or self.endless):
            conditions.append(f"not {site.torch}.is_grad_enabled()")
        conditions.extend(site.keeps_graph(self.kept))
        shown = not shown_names(site).isdisjoint(self.selection.names)
        # A tensor's text names the function that made it: grad_fn=<WhereBackward0>.
        proven = not (conditions or self.aliasing or self.other_leaves or self.cut or shown or site.flow.splits)
        chained = len(self.selection.arms) > 2 or bool(self.selection.arms[-1].assignments)
        static = first.static if first else ()
        cut = frozenset(self.cut) if grads else frozenset()
        return Facts(tuple(dict.fromkeys(conditions)), proven and not (static and chained), cut)

    def _named_before_proof(self) -> Iterator[str]:
        """What the conditions name that only the test, which comes after them, shows to be a tensor."""
        env, first = dict(self.site.place.env), self.selection.arms[0].condition
        for operand in first.static if first else ():
            narrow(self.site.evaluator, operand, True, env)
        for text in (part for each in self.assumed for part in (each.one, each.other) if part):
            for node in read_values(ast.parse(text, mode="eval").body):
                value = self.site.evaluator.value(node, env)
                known = value.is_tensor and not value.hint
                if not known and value.callee is None:
                    yield ast.unparse(node)

    def _types(self) -> list[str]:
        """Conditions on what only an annotation, a constructor or a configuration calls a tensor or a number."""
        tensors = dict.fromkeys(self._named_before_proof())
        numbers: dict[str, None] = {}
        made = {item.name for item in self.selection.temporaries}
        for arm in self.selection.arms:
            tests = arm.condition.tensors if arm.condition else ()
            for expression in (*tests, *(item.value for item in arm.assignments)):
                for node in read_values(expression):
                    value = self.site.evaluator.value(node, arm.env)
                    if isinstance(node, ast.Name) and node.id in made:
                        continue
                    if value.kind is ValueKind.TENSOR and value.hint:
                        tensors[self.site.text(node)] = None
                    elif expression not in tests and _may_be_no_number(node, value):
                        numbers[self.site.text(node)] = None
            for name in self.selection.names:
                if name not in {item.name for item in arm.assignments} and (known := arm.env.get(name)) and known.hint:
                    tensors[name] = None
        torch = self.site.torch
        return [
            *(f"isinstance({text}, {torch}.Tensor)" for text in tensors),
            *(f"isinstance({text}, (int, float))" for text in numbers),
        ]


def _in_words(name: str) -> str:
    """A variable as code; what has no name, in words."""
    return _NAMELESS.get(name, f"`{name}`")


def _may_be_no_number(node: ast.expr, value: Value) -> bool:
    """True for what only an annotation, a configuration or a constructor makes a number."""
    if not value.is_python or value.callee is not None:
        return False
    return value.origin in _NUMBERS or (isinstance(node, ast.Attribute) and value.origin is Origin.CONSTANT)


def _without_layer_dtype(value: Value) -> Value:
    """The value without the floating dtype that only the class of a layer gives it."""
    if value.hint and value.dtype is not None and value.dtype.startswith("float:layer"):
        return value._replace(dtype=value.dtype.removeprefix("float:"))
    return value
