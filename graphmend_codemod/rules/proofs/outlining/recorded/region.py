"""Consecutive statements that a recorded run went through: what goes in, and what comes out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.patterns import is_attribute, is_name, name_imported, stores_name
from graphmend_codemod.analysis.scope import parameters, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.settings import SeenCalls
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import KNOWS_NAMES, OF_A_CLASS, jumps_out
from graphmend_codemod.rules.proofs.outlining.effects.settled_globals import demand_unchanged
from graphmend_codemod.rules.proofs.outlining.recorded.alike import CALLS_NEEDED, of_one_kind
from graphmend_codemod.rules.proofs.outlining.recorded.facts import (
    CHANGING,
    MEMORY,
    KeptObject,
    check_given,
    check_result,
    check_settled,
    identity_of,
    is_empty,
    is_new_each_time,
    is_one_function,
    tensors_of,
)
from graphmend_codemod.rules.proofs.outlining.recorded.moments import (
    AUTOGRAD,
    OWNER,
    RESULT,
    TENSOR,
    Fact,
    observations,
    owner_changes,
)
from graphmend_codemod.rules.proofs.outlining.recorded.pending import Apart, check_settled_before
from graphmend_codemod.rules.proofs.outlining.recorded.sizes import Given
from graphmend_codemod.rules.proofs.outlining.statements.outlined_statements import check_around

_LEAVES = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.Nonlocal, ast.Delete)
_SETTINGS = frozenset({"int", "float", "str", "constant"})
_RECURRENT = frozenset(f"torch.nn.modules.rnn.{each}" for each in ("RNN", "GRU", "LSTM"))


class Region:
    """The statements, the observations of them, and the names and facts of what goes in and comes out."""

    def __init__(self, site: Site, known: SeenCalls, statements: Sequence[ast.stmt], *, alike: bool = False) -> None:
        first, last = site.at(statements[0]), site.at(statements[-1])
        if first is None or last is None:
            raise NotProven("torch.compile does not get to the statement")
        self.site, self.last, self.statements = first, last, list(statements)
        self._every = observations(site, known, statements)
        if len(self._every) < CALLS_NEEDED:
            raise NotProven(f"the recorded run went through this {len(self._every)} times; record at least 2 calls")
        self.stored = self._stored()
        self.seen = of_one_kind(self._every, self._read_names()) if alike else self._every
        body = first.evaluator.scope.node.body
        self.returns = isinstance(statements[-1], ast.Return) or (
            statements[-1] is body[-1] and any(isinstance(part, ast.Return) for part in self._parts())
        )
        self._check_forms()
        self._check_effects()
        self.words = self._empty_words()
        self.given = list(self._given())
        self.results = list(self._results())  # what no operator can return takes in what follows
        self._check_memory()
        self.apart = self._check_objects(known)

    @property
    def owner(self) -> str | None:
        """The name of the instance, if it goes in."""
        own = self.site.evaluator.scope.self_name
        return own if own is not None and any(each.text == own for each in self.given) else None

    def _parts(self) -> Iterator[ast.AST]:
        for statement in self.statements:
            yield from walk(statement)

    def _check_forms(self) -> None:
        jumps = jumps_out(self.statements)
        for part in self._parts():
            if isinstance(part, ast.Return) and not self.returns:
                raise KeptObject(f"`{short(part)}` leaves the statement")
            if isinstance(part, _LEAVES) or id(part) in jumps:
                raise NotProven(f"`{short(part)}` leaves the statement")
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                raise NotProven(f"`{short(part)}` cannot be moved into a function")
            if isinstance(part, ast.Attribute) and part.attr == "requires_grad_":
                raise NotProven("it makes a tensor need a gradient")
            if isinstance(part, ast.Name) and not self.site.evaluator.scope.is_local(part.id):
                demand_unchanged(self.site, part.id)
            word = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
            if word in KNOWS_NAMES | OF_A_CLASS or (word.startswith("__") and not word.endswith("__")):
                raise NotProven(f"`{word}` has another meaning in another function")
            if isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store):
                raise NotProven(f"`{short(part)}` is assigned, and an operator that the run describes changes nothing")
        self._check_around()

    def _check_around(self) -> None:
        if any(isinstance(parent, ast.Try) for parent in self.site.place.parents):
            raise NotProven("a `try` around it may catch what an operator raises at another moment")
        check_around(self.site)

    def _check_effects(self) -> None:
        for each in self._every:
            old, new = each.before.held, each.after.held
            if old[AUTOGRAD] != new[AUTOGRAD]:
                raise NotProven("it asks autograd for gradients, and what an operator is given has no history")
            if old.get(OWNER) != new.get(OWNER):
                raise NotProven("it changed the instance in the recorded run")
            if old.get(OWNER, [0, 0, 0, 0])[3] != each.entry.held.get(OWNER, [0, 0, 0, 0])[3]:
                raise NotProven("parameters of the instance changed before it in the recorded run")
            later = {identity_of(fact): fact for fact in new.values()}
            for name, fact in old.items():
                if later.get(identity_of(fact), fact) != fact:
                    shown = name.removeprefix("@argument ").removeprefix("global ")
                    reason = f"it changed `{shown}` in place in the recorded run"
                    if each.entry.held.get(name) is None and self._is_made_here(name):
                        raise KeptObject(reason, before=True)
                    raise NotProven(reason)

    def _check_objects(self, known: SeenCalls) -> Apart:
        """NotProven where an object that is given changes before the statements: Dynamo puts that off."""
        if self.owner is not None and owner_changes(known):
            raise NotProven("the instance changed in the recorded run, and an operator would see what was before")
        for given in self.given:
            for fact, each in zip(given.facts, self.seen, strict=True):
                entry = {identity_of(one): one for one in each.entry.held.values()}
                if given.kind == "object" and entry.get(identity_of(fact), fact) != fact:
                    raise NotProven(f"`{given.text}` changed before it in the recorded run")
            if is_new_each_time(given):
                raise NotProven(f"`{given.text}` was another object at each call: the graph would be compiled for each")
        own = self.site.evaluator.scope.self_name
        held = [each for each in self.given if each.kind == "object"]
        objects = {each.text for each in held if each.text == own or self._is_from_outside(each.text)}  # no functions

        def plain(text: str) -> bool:
            facts = [each.before.held.get(text) for each in self.seen]
            return all(fact is None or fact[0] in _SETTINGS for fact in facts)  # the run does not ask properties

        return check_settled_before(self.site, self.statements, objects, self._numbers(), self.stored, plain)

    def _numbers(self) -> set[str] | None:
        """The attributes of the instance that the statements read, if they are numbers, flags and words; else None."""
        read = [] if self.owner is None or self._hands_on() else [*self._read()]
        plain = all(fact is not None and fact[0] in _SETTINGS for each in read for fact in each.facts)
        return {each.text.rpartition(".")[2] for each in read} if read and plain else None

    def _stored(self) -> dict[str, None]:
        found: dict[str, tuple[int, int]] = {}
        for statement in self.statements:
            for part in (statement, *walk_scope(statement)):
                names = [part.id] if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) else []
                if isinstance(part, (ast.Import, ast.ImportFrom)):
                    names = list(map(name_imported, part.names))
                for name in names:
                    place = (part.lineno, part.col_offset)  # type: ignore[attr-defined]
                    found[name] = min(found.get(name, place), place)
        return dict.fromkeys(sorted(found, key=found.__getitem__))

    def _read_names(self) -> list[str]:
        """The names that the statements read from before them, if these were bound."""
        loads = [part for part in self._parts() if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store)]
        loads.sort(key=lambda part: (part.lineno, part.col_offset))
        names = dict.fromkeys(part.id for part in loads)
        for part in self._parts():
            if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
                names[part.target.id] = None
        return [name for name in names if name not in self.stored or _reads_first(self.statements, name)]

    def _empty_words(self) -> list[str]:
        """`kwargs` that was empty in each call, and of which the statements make no more than `f(x, **kwargs)`."""
        node = self.site.evaluator.scope.node
        name = node.args.kwarg.arg if node.args.kwarg is not None else ""
        calls = [part for part in self._parts() if isinstance(part, ast.Call)]
        unpacked = {id(word.value) for call in calls for word in call.keywords if word.arg is None}
        used = [part for part in self._parts() if is_name(part, name)]
        stored = any(stores_name(part, name) for part in walk(node))
        empty = all(is_empty(each.before.held.get(name)) for each in self.seen)
        return [name] if used and empty and not stored and all(id(part) in unpacked for part in used) else []

    def _given(self) -> Iterator[Given]:
        scope = self.site.evaluator.scope
        for name in self._read_names():
            if name in self.words:
                continue
            held = [each.before.held.get(name) for each in self.seen]
            if all(each is None for each in held):
                if scope.is_local(name) and name not in self.stored and not _is_bound_inside(self.statements, name):
                    raise NotProven(f"`{name}` was not bound in the recorded run")
                continue
            facts = tuple(each for each in held if each is not None)
            if len(facts) != len(held):
                raise NotProven(f"`{name}` was bound in some calls of the recorded run alone")
            given = Given(name, facts)
            outside = name == scope.self_name or self._is_from_outside(name) or is_one_function(given, self.seen)
            if given.kind == "object" and not outside:
                raise KeptObject(f"`{name}` is an object that the function makes", before=True)
            if given.kind in CHANGING and name in self.stored and not self._is_argument(name):
                raise KeptObject(f"`{name}` is bound again, and what it held before may change", before=True)
            check_given(given)
            yield given

    def _is_from_outside(self, name: str) -> bool:
        """True for an argument of the function, or a variable around it, that the statements alone bind again."""
        scope = self.site.evaluator.scope
        if name not in scope.locals:
            return True
        looped = any(isinstance(each, (ast.For, ast.AsyncFor, ast.While)) for each in self.site.place.parents)
        own = set() if looped else {id(part) for part in self._parts()}
        stored = any(stores_name(part, name) for part in walk(scope.node) if id(part) not in own)
        return self._is_argument(name) and not stored

    def _is_made_here(self, name: str) -> bool:
        """True for a variable of the function that is none of its arguments: what made it may be taken in."""
        return self.site.evaluator.scope.is_local(name) and not self._is_argument(name)

    def _is_argument(self, name: str) -> bool:
        return any(each.arg == name for each in parameters(self.site.evaluator.scope.node))

    def runs_layers(self) -> bool:
        """True where what is given holds parameters that are trained."""
        return any(each[0] == "object" and each[4] for given in self.given for each in given.facts)

    def held(self) -> list[str]:
        """The parameters of the objects that are given, as elements of a list: `self.weight`, `*net.parameters()`."""
        found: dict[str, None] = {}
        for given in self.given:
            if given.kind != "object" or not any(each[4] for each in given.facts if len(each) > 4):
                if given.text == self.owner:  # the attributes that are known
                    attributes = self._attributes(given.text)
                    if "" in attributes and not _is_module(given):
                        raise NotProven(f"`{given.text}` is no module, and may hold what needs a gradient")
                    found.update(dict.fromkeys(filter(None, attributes)))
                continue
            _check_traced(given.text, given.facts[0])
            attributes = self._attributes(given.text) if given.text == self.owner else {"": None}
            found.update({f"*{given.text}.parameters()": None} if "" in attributes else attributes)
        return list(found)

    def hold_nothing(self) -> Iterator[str]:
        """The modules that are given as a whole and held nothing that is trained."""
        for given in self.given:
            whole = given.text != self.owner or "" in self._attributes(given.text)
            if whole and _is_module(given) and not any(each[4] for each in given.facts):
                yield given.text

    def _attributes(self, owner: str) -> dict[str, None]:
        """The attributes that the statements read and that hold parameters; an empty one for all of the instance."""
        found: dict[str, None] = {}
        held = self.seen[0].before.held
        inside = {id(part.value) for part in self._parts() if isinstance(part, ast.Attribute)}
        for part in self._parts():
            if is_name(part, owner) and id(part) not in inside:
                found[""] = None
            if not isinstance(part, ast.Attribute) or not isinstance(part.value, ast.Name) or part.value.id != owner:
                continue
            name = f"{owner}.{part.attr}"
            fact = held.get(name)
            if fact is None:
                found[""] = None  # a method or property, which may read anything
            elif fact[0] == TENSOR and fact[4]:
                found[name] = None
            elif fact[0] in ("list", "tuple") and any(each[0] == TENSOR and each[4] for each in tensors_of(fact)):
                found[""] = None
            elif fact[0] == "object" and fact[4]:
                _check_traced(name, fact)
                found[f"*{name}.parameters()"] = None
        return found

    def modules(self) -> Iterator[Given]:
        """The modules that the statements may run: those that are given, or that a given instance holds."""
        for given in self.given:
            held = [each for each in self._read() if _is_module(each)] if given.text == self.owner else []
            if not _is_module(given):
                yield from held
            elif given.text != self.owner or held or self._hands_on():
                yield given  # the instance for what it holds: Dynamo does not even look at recurrent layers

    def untrained(self) -> Iterator[str]:
        """Conditions under which what needed no gradient in any call, and is read from a given object, needs one."""
        for given in self.given:
            read = [*self._read()] if given.text == self.owner else []
            for each in read:
                if None not in each.facts and all(fact[0] == TENSOR and not fact[4] for fact in each.facts):
                    yield f"{each.text}.requires_grad"
            whole = [given] if given.text != self.owner or self._hands_on() else []
            for each in [*whole, *read]:
                if _is_module(each) and all(fact[6] and not fact[4] for fact in each.facts):
                    yield f"any(each.requires_grad for each in {each.text}.parameters())"

    def _hands_on(self) -> bool:
        """True where the statements call a method of the instance or hand it on."""
        inside = {id(part.value) for part in self._parts() if isinstance(part, ast.Attribute)}
        if any(is_name(part, self.owner) and id(part) not in inside for part in self._parts()):
            return True
        return any(None in each.facts for each in self._read())

    def _read(self) -> Iterator[Given]:
        """The attributes of the instance that the statements read. None for a method, and what a property gives."""
        own = self.owner
        parts = [each for each in self._parts() if is_attribute(each, own)]
        for name in dict.fromkeys(f"{own}.{part.attr}" for part in parts):
            yield Given(name, tuple(each.before.held.get(name) for each in self.seen))  # type: ignore[misc]

    def settings(self) -> Iterator[Given]:
        """Numbers, flags and words of the instance that the statements read."""
        for given in self._read() if self.owner is not None else ():
            if all(each is not None and each[0] in _SETTINGS for each in given.facts):
                check_settled(given)
                yield given

    def _results(self) -> Iterator[Given]:
        """The names that are read later, or `RESULT`, with what they were behind the statements."""
        if self.returns:
            yield self._result(RESULT)
            return
        for name in self.stored:
            if self.last.live_after(name):
                yield self._result(name)

    def _check_memory(self) -> None:
        """An operator gives each result memory of its own: what is written into one later is in no other."""
        for every in zip(*(each.facts for each in self.results), strict=True):
            memory = [one[MEMORY[one[0]]] for fact in every for one in tensors_of(fact)]
            if len(set(memory) - {-1}) < len(memory) - memory.count(-1):
                raise KeptObject("what it gives shared memory, in the recorded run")

    def _result(self, name: str) -> Given:
        facts = [each.after.held.get(name) for each in self.seen]
        shown = "the result" if name == RESULT else f"`{name}`"
        if any(each is None for each in facts):
            raise KeptObject(f"{shown} was not bound in every call of the recorded run")
        result = Given(name, tuple(each for each in facts if each is not None))
        check_result(result, shown, self.seen)
        return result


def _is_bound_inside(statements: Sequence[ast.stmt], name: str) -> bool:
    """True for the variable of a comprehension and the argument of a lambda."""
    for part in (part for statement in statements for part in walk(statement)):
        if is_name(part, name) and isinstance(part.ctx, ast.Store):
            return True
        if isinstance(part, ast.arg) and part.arg == name:
            return True
    return False


def _reads_first(statements: Sequence[ast.stmt], name: str) -> bool:
    first = statements[0]
    if isinstance(first, ast.AugAssign) and is_name(first.target, name):
        return True
    return reads_before_writing(list(statements), name)


def _is_module(given: Given) -> bool:
    return all(each is not None and each[0] == "object" and each[7] is not None for each in given.facts)


def _check_traced(name: str, fact: Fact) -> None:
    if fact[1] in _RECURRENT:
        raise NotProven(
            f"`{name}` is a recurrent layer, and Dynamo breaks the graph where its parameters are handed over"
        )
