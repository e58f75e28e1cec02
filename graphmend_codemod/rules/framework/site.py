"""What a rule sees of the place it looks at: the node, its surroundings, and answers about them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TypeVar

from graphmend_codemod.analysis import gradients, scripts, speculation, torch_api
from graphmend_codemod.analysis.dataflow import Flow
from graphmend_codemod.analysis.gradients import roots
from graphmend_codemod.analysis.hazards import Hazards
from graphmend_codemod.analysis.interpreter import Env, Evaluator
from graphmend_codemod.analysis.liveness import live_after
from graphmend_codemod.analysis.patterns import name_imported
from graphmend_codemod.analysis.program_points import ProgramPoint
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.values import Value
from graphmend_codemod.core.findings import CompilePath, Helper
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.project.summary.records import ModuleSummary
from graphmend_codemod.rules.framework.long_loops import few_rounds
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site_text import SiteText

T = TypeVar("T")
TORCH_NAMES = ("torch", "th", "T", "pt")
ASKS_OLDER_TORCH = "_is_torch_compiling"
_BINDS = (
    (":=", r"\bNAME\s*:="),
    ("case", r"\n[ \t]*case\s[^\n#]*\bNAME\b(?!\.)[^\n#]*:"),
    ("globals()[", r"\bglobals\(\)\[[\"']NAME[\"']\]"),
)
"""What stands in any text that binds a name again, and the pattern, which takes far longer to look for."""


@lru_cache(maxsize=8)
def _needed_with(text: str, name: str) -> frozenset[str]:
    """Names imported in the same `if` as `name` which classes at the top level have as a base.

    Without the import, the module fails there: `if is_torch_available(): import torch; from torch import nn`.
    """
    from graphmend_codemod.analysis.callgraph import tree_of

    tree = tree_of(text)
    together: set[str] = set()
    for block in (each.body for each in tree.body if isinstance(each, ast.If)):
        imports = [each for each in block if isinstance(each, (ast.Import, ast.ImportFrom))]
        bound = {name_imported(alias) for each in imports for alias in each.names}
        together |= bound if name in bound else set()
    bases = [base for each in tree.body if isinstance(each, ast.ClassDef) for base in each.bases]
    return frozenset((dotted(base) or "").partition(".")[0] for base in bases) & together


@lru_cache(maxsize=16)
def _is_bound_again(text: str, name: str) -> bool:
    return any(mark in text and re.search(binds.replace("NAME", name), text) for mark, binds in _BINDS)


_LEFT_TO_PYTHON = frozenset({"torch.jit.ignore", "torch.jit.unused"})
"""Decorators of methods that TorchScript does not compile."""


class Site(SiteText):
    """A node in a function that Dynamo reaches. `place` is its statement, with what names hold before it."""

    def __init__(
        self,
        node: ast.AST,
        place: ProgramPoint,
        flow: Flow,
        evaluator: Evaluator,
        source: SourceFile,
        summary: ModuleSummary,
        settings: Settings,
        function: str,
        written: Mapping[int, tuple[ast.expr, str]] | None = None,
        without_gradients: bool = False,
    ) -> None:
        super().__init__(place, source, written or {})
        self.node = node
        self.flow = flow
        self.evaluator = evaluator
        self.summary = summary
        self.settings = settings
        self.function = function
        self.without_gradients = without_gradients

    def but(
        self,
        *,
        node: ast.AST | None = None,
        place: ProgramPoint | None = None,
        written: Mapping[int, tuple[ast.expr, str]] | None = None,
        without_gradients: bool | None = None,
    ) -> Site:
        """The same site but for what is given. With `without_gradients`, compile paths are for code without them."""
        return Site(
            self.node if node is None else node,
            self.place if place is None else place,
            self.flow,
            self.evaluator,
            self.source,
            self.summary,
            self.settings,
            self.function,
            self.written if written is None else written,
            self.without_gradients if without_gradients is None else without_gradients,
        )

    def remembered(self, question: str, node: ast.AST, answer: Callable[[], T], *, anywhere: bool = False) -> T:
        """`answer()`, worked out once for this question about this node where names hold what they hold here.

        With `anywhere`, the answer does not depend on what names hold.
        """
        key = (question, id(node), 0 if anywhere else id(self.place.env))
        known = self.flow.answers.get(key)
        if known is None:
            known = self.flow.answers[key] = (answer(), self.place.env)
        found: T = known[0]
        return found

    def proven_once(self, question: str, node: ast.AST, proof: Callable[[], T]) -> T:
        """`proof()`, or the reason for which it raises NotProven, worked out once; names are nothing to it."""

        def look() -> T | NotProven:
            try:
                return proof()
            except NotProven as reason:
                return reason.anew()

        found = self.remembered(question, node, look, anywhere=True)
        if isinstance(found, NotProven):
            raise found.anew()
        return found

    @property
    def class_name(self) -> str:
        """The name of the class around the function; empty where there is none."""
        return (self.evaluator.scope.class_qualified or "").rpartition(".")[2]

    # questions

    def value(self, node: ast.expr) -> Value:
        """What `node` is, before the statement runs."""
        return self.evaluator.value(node, self.place.env)

    def resolve(self, node: ast.expr) -> str | None:
        """The qualified name of what `node` spells; None where there is none."""
        return self.evaluator.resolve(node, self.place.env)

    def resolve_global(self, node: ast.expr) -> str | None:
        """The qualified name of what `node` spells at the top level of the module; None where there is none.

        `node` may stand in any function of the file. What such a function binds itself has no name there.
        """
        name = dotted(node)
        found = self.evaluator.scope.resolve_global(name) if name is not None else None
        return None if found is None or self._is_local(node, name or "") else found

    def _is_local(self, node: ast.expr, name: str) -> bool:
        from graphmend_codemod.analysis.bound_names import is_bound_around  # a commit hook seldom asks

        root = name.partition(".")[0]
        return is_bound_around(self.source.text, node, root, self.evaluator.scope.resolve_global(root))

    def operation(self, call: ast.Call) -> tuple[str, list[ast.expr]]:
        """The name of the function of torch that a call runs, or of a method, with the tensor first: `any`, `[x]`.

        It is a method of whatever nothing imported names. Other calls have an empty name.
        """
        qualified = self.resolve(call.func)
        if (name := torch_api.torch_function(qualified)) is not None:
            return name, call.args
        if qualified is None and isinstance(call.func, ast.Attribute):
            return call.func.attr, [call.func.value, *call.args]
        return "", []

    def judge(self, node: ast.expr) -> Hazards:
        """Whether `node` may be evaluated although eager would not."""
        return speculation.judge(self.evaluator, node, self.place.env).unconditional

    def live_after(self, name: str) -> bool:
        """True when the value `name` has after the statement may be read."""
        return live_after(self.place, name)

    def sole_owner(self, name: str) -> bool:
        """True when nothing but the local `name` refers to its tensor or its storage."""
        value = self.place.env.get(name)
        if value is None or not value.is_tensor or not self.is_fresh(value) or value.token in self.place.leaked:
            return False
        return all(other.token != value.token for key, other in self.place.env.items() if key != name)

    def is_fresh(self, value: Value) -> bool:
        """True when no other object shared the tensor's storage when the value was made."""
        if value.fresh:
            self.flow.demand_leaks()
        return value.fresh

    def roots(self, node: ast.expr, env: Env) -> frozenset[str]:
        """Names of the tensors, attributes and calls that a gradient of `node` may reach."""
        self.flow.demand_leaks()
        return roots(self.evaluator, node, env)

    def roots_of(self, value: Value) -> frozenset[str]:
        """The same for a tensor that was worked out already."""
        self.flow.demand_leaks()
        if value.roots is not None:
            return value.roots
        return frozenset({value.token} if value.grad and value.token else ())

    def is_bound(self, name: str) -> bool:
        """True when the local `name` certainly has a value."""
        value = self.place.env.get(name)
        return value is not None and (value.is_tensor or value.is_python or value.optional)

    @cached_property
    def torch(self) -> str | None:
        """How this module spells `torch`; None when its name is taken by something else."""
        scope = self.evaluator.scope
        for name in TORCH_NAMES:
            if not scope.is_local(name) and scope.resolve_global(name) == "torch" and self.stays(name):
                return name
            value = self.place.env.get(name)
            # A name of a function around this one may be bound again before this one is called.
            if name in scope.locals and value is not None and value.callee == "torch":
                return name
        free = not scope.is_local("torch") and scope.resolve_global("torch") is None
        return "torch" if free else None

    def stays(self, name: str) -> bool:
        """True for a name of the module that nothing deletes or binds again, but to None where torch is missing."""
        bindings = [binding for binding in self.summary.bindings if binding.name == name]
        others = [each for each in bindings if each.kind != "import"]
        written = any(each.name == name and not each.receiver for each in self.summary.writes)
        if written or _is_bound_again(self.source.text, name):
            return False
        if not others:
            return True
        without = all(each.value is not None and each.value.text == "None" for each in others)
        return without and all(binding.conditional for binding in bindings)

    @cached_property
    def torch_at_import(self) -> bool:
        """True when `torch` is bound at the top level whatever happens, so that a decorator may use it."""
        name = self.torch
        if name is None or self.evaluator.scope.is_local(name):
            return False
        bindings = [binding for binding in self.summary.bindings if binding.name == name]
        sure = bool(self.imports) or any(not binding.conditional for binding in bindings)
        if sure or not bindings:
            return sure
        times = Counter(binding.name for binding in self.summary.bindings)
        return any(times[each] == 1 for each in _needed_with(self.source.text, name))

    @property
    def imports(self) -> tuple[str, ...]:
        """Modules that an edit has to import for `self.torch` to be bound; also where nothing can bind it."""
        scope = self.evaluator.scope
        bound = scope.is_local("torch") or (scope.resolve_global("torch") is not None and not self._starred)
        return ("torch",) if self.torch is None or (self.torch == "torch" and not bound) else ()

    @property
    def _starred(self) -> bool:
        """True where `from .layers import *` binds `torch`, and the file imports something else from torch itself."""
        bindings = self.summary.bindings
        some = any(each.target.startswith("torch.") and not each.conditional for each in bindings)
        return bool(self.summary.stars) and some and all(each.name != "torch" for each in bindings)

    @property
    def compiling(self) -> str:
        """The expression that is true while torch.compile traces."""
        helper = self.asks_older_torch
        return f"{self.torch}.compiler.is_compiling()" if helper is None else f"{helper.name}()"

    @cached_property
    def asks_older_torch(self) -> Helper | None:
        """The function that tells whether torch.compile traces in a project that supports a torch without it."""
        target, first = self.settings.target_torch, torch_api.SINCE["compiler.is_compiling"]
        if target is None or target >= first:
            return None
        return self.asking(
            ASKS_OLDER_TORCH,
            "def {name}():\n"
            '    """True while torch.compile traces; a torch from before 2.1 has no `torch.compiler`."""\n'
            '    return hasattr({torch}, "compiler") and {torch}.compiler.is_compiling()',
        )

    def asking(self, name: str, text: str) -> Helper | None:
        """A function by which headers ask for the compiler: `text` with its name and that of torch.

        None where TorchScript would have to compile the function, and where its name, or torch at the top level, is
        taken.
        """
        scope = self.evaluator.scope
        if self.scripted or self.torch is None or scope.is_local(self.torch) or scope.is_local(name):
            return None
        source = text.format(name=name, torch=self.torch)
        taken = re.search(rf"\b{name}\b", self.source.text) and source not in self.source.text
        plain = scope.resolve_global("hasattr") in (None, "builtins.hasattr")
        return Helper(name, source) if plain and not taken else None

    @property
    def gradients_off(self) -> str:
        """The condition that gradients are off where the statement runs."""
        return f"not {self.torch}.is_grad_enabled()"

    def header(self, word: str, conditions: Sequence[str], *, negated: bool = False) -> CompilePath:
        """The same, for code without gradients where that was asked for, and for loops of a few rounds."""
        asks = [number for number, each in enumerate(conditions, 1) if "compiling()" in each]
        if asks and self.place.in_loop:
            rounds = [each for each in few_rounds(self) if each not in conditions]
            conditions = [*conditions[: asks[0]], *rounds, *conditions[asks[0] :]]
        if self.without_gradients and asks:
            # In front of what names what an earlier path of the same edit computed.
            conditions = [*conditions[: asks[0]], self.gradients_off, *conditions[asks[0] :]]
        if self.gradients_off in conditions:  # what needs no gradient is settled
            leaf = f"not ({self.torch}.is_grad_enabled() and "
            conditions = [each for each in conditions if not each.startswith(leaf)]
        return super().header(word, conditions, negated=negated)

    @cached_property
    def scripted(self) -> bool:
        """True where TorchScript compiles the function as well: this or another file says so, and it can."""
        scope = self.evaluator.scope
        left = any(self.resolve_global(each) in _LEFT_TO_PYTHON for each in scope.node.decorator_list)
        if left or scripts.is_refused(scope.node):
            return False
        if scripts.is_scripted(self.source.text):
            return True
        return scope.index.is_scripted(self.summary.path, self.function, scope.node.lineno)

    @cached_property
    def no_grad(self) -> bool:
        """True when the statement certainly runs without gradients."""
        if self.sets_gradient_mode:
            return False
        contexts = [
            item.context_expr
            for parent in reversed(self.place.parents)
            if isinstance(parent, (ast.With, ast.AsyncWith))
            for item in reversed(parent.items)
        ]
        return gradients.certainly_off([*contexts, *reversed(self.evaluator.scope.node.decorator_list)], self.resolve)

    @property
    def sets_gradient_mode(self) -> bool:
        """True where a statement of the file may turn gradients on or off: only a condition knows what holds."""
        return gradients.set_by_statement(self.source.text)

    def keeps_graph(self, kept: Iterable[ast.expr]) -> list[str]:
        """Conditions under which no tensor among these loses its graph to a select that runs without gradients."""
        inside = any(isinstance(parent, (ast.With, ast.AsyncWith)) for parent in self.place.parents)
        inside = inside or self.sets_gradient_mode
        if not inside and not self.no_grad:
            return []
        values = {node.id: self.place.env.get(node.id) for node in kept if isinstance(node, ast.Name)}
        names = sorted(name for name, value in values.items() if value is not None and value.is_tensor and value.grad)
        if self.no_grad:
            return [f"not {name}.requires_grad" for name in names]
        return [f"({self.torch}.is_grad_enabled() or not {name}.requires_grad)" for name in names]

    def free_name(self, *wishes: str) -> str:
        """The first of `wishes`, numbered if need be, that means nothing in this function or module."""
        scope = self.evaluator.scope
        for number in range(1, 100):
            for wish in wishes:
                name = wish if number == 1 else f"{wish}_{number}"
                if scope.is_local(name):
                    continue
                # Behind `from torch.distributions import *` any name may lead there.
                if scope.resolve_global(name) is None or not re.search(rf"\b{name}\b", self.source.text):
                    return name
        raise AssertionError("a function binds a hundred names of one stem")

    def at(self, statement: ast.stmt) -> Site | None:
        """The same questions asked at another statement of the function; None where Dynamo does not get to."""
        place = self.flow.places.get(id(statement))
        return None if place is None else self.but(node=statement, place=place)

    def reached(self, statement: ast.stmt, name: str = "") -> Site:
        """The same; NotProven where Dynamo does not get to the statement, or to what it begins and `name` names."""
        found = self.at(statement)
        if found is None:
            raise NotProven(f"{name or f'`{speculation.short(statement)}`'} is not reached by torch.compile")
        return found

    def with_env(self, env: Env) -> Site:
        """The same site if names held what `env` says."""
        return self.but(place=self.place._replace(env=env))

    def following(self) -> list[ast.stmt]:
        """The statements after this one in its block."""
        return self.place.below()
