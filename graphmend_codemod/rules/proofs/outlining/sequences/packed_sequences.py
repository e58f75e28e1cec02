"""Recurrent layers that run on packed sequences: packing, the layer and padding become one operator.

A packed sequence has as many rows as data says, so none can be in a graph. What it is made of and what is made of it
can: a padded tensor goes in and another one comes out. That one has as many steps as the longest sequence, which is a
number that the graph carries as a symbol (GM802), or as `total_length` says.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_name, is_none
from graphmend_codemod.analysis.scope import parameter_names, walk
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import definition_before, operator_name
from graphmend_codemod.rules.proofs.outlining.sequences import recurrent
from graphmend_codemod.rules.proofs.outlining.sequences.packed_statements import (
    PackingCall,
    after,
    before,
    demand_lengths,
    flattens,
    is_one_name,
    is_plain,
    lengths_of,
    only,
    read_by,
    taken,
)
from graphmend_codemod.rules.proofs.outlining.sequences.recurrent_layers import kind_of, layers_in
from graphmend_codemod.rules.proofs.outlining.symbols.unbacked import helpers as unbacked_helpers
from graphmend_codemod.rules.proofs.outlining.texts import part
from graphmend_codemod.rules.proofs.outlining.texts.layers import PACKED

_COMMENT = "# torch.compile does not trace packed sequences: it calls what is done with this one as one operator."


def edit(site: Site, statement: ast.stmt, layer: ast.Attribute) -> Edit | None:
    """The compile path in front of the statements that pack, run the layer and pad; None where nothing is packed.

    NotProven where these are not one after the other, or where the packed sequence is used otherwise.
    """
    body, position = site.place.blocks[-1]
    ran = taken(statement)
    if ran is None or ran.call.func is not layer or not ran.call.args:
        return None
    found = before(site, body, position, ran.call.args[0])
    if found is None:
        return None
    first, test = found
    packed, out, own = taken(only(body[first], test)), ran.targets[0], site.evaluator.scope.self_name
    assert packed is not None
    if not isinstance(out, ast.Name) or own is None:
        raise NotProven(f"`{speculation.short(out)}` is no name")
    last = after(site, body, position, ran, test)
    padded = taken(only(body[last], test)) if last is not None else None
    if padded is None and (len(ran.targets) != 2 or site.live_after(out.id) or test is not None):
        raise NotProven("the next statements do not pad the packed sequence; manually pad it with `total_length`")
    between = [each for each in body[first + 1 : position] if not flattens(each)]
    behind = list(body[position + 1 : last]) if last is not None else []
    return _Region(site, packed, ran, padded, between, behind, layer, own, test).edit(body, first)


def takes(site: Site, statement: ast.stmt) -> bool:
    """True where `lengths = x.tolist()` is part of the statements that become one operator with what packs by them."""
    body, position = site.place.blocks[-1]
    if read_by(site, statement) is None or position + 1 == len(body):
        return False
    for following in body[position + 1 : position + _NEAR]:
        there = site.at(following)
        layers = [] if there is None else layers_in(there, following)
        if there is not None and len(layers) == 1:
            try:
                found = edit(there, following, layers[0])
            except NotProven:
                return False
            starts = [] if found is None else [each.span for each in found.replacements]
            return any(each[:2] <= site.span(statement)[:2] for each in starts)
    return False


_NEAR = 8
"""So many statements behind what reads lengths, the layer is looked for."""


class _Region:
    """What packs, runs the layer and pads, with statements in between; `padded` is None where states alone are used."""

    def __init__(
        self,
        site: Site,
        packed: PackingCall,
        ran: PackingCall,
        padded: PackingCall | None,
        between: list[ast.stmt],
        behind: list[ast.stmt],
        layer: ast.Attribute,
        own: str,
        test: ast.expr | None,
    ) -> None:
        self._site = site
        self._packed, self._ran, self._padded = packed, ran, padded
        self._between, self._behind = between, behind
        self._layer = layer
        self._own = own
        self._test = test
        self._pack = self._options(packed.call, ["input", "lengths", "batch_first", "enforce_sorted"], 2)
        self._lengths = lengths_of(site, self._pack["lengths"])
        if self._lengths is None:
            demand_lengths(site, self._pack["lengths"])
        pad = ["sequence", "batch_first", "padding_value", "total_length"]
        self._pad = {} if padded is None else self._options(padded.call, pad, 1)

    def edit(self, body: Sequence[ast.stmt], position: int) -> Edit:
        """The edit, for the statement at this position of `body` that packs."""
        site, layer = self._site, self._layer
        demand_torch(site)
        first = self._begin(body, position)
        self._check_targets(body, position)
        last = self._ran.statement if self._padded is None else self._padded.statement
        site_first = site.at(first) or site
        conditions = ["torch.compiler.is_dynamo_compiling()", *self._asked(), self._condition(site_first)]
        operator = f"_{'packed' if self._padded is not None else 'last'}_{layer.attr.strip('_')}_operator"
        chosen = recurrent.choice(site, layer, operator) if site.scripted else None
        if chosen is not None:
            conditions = [site.compiling]
        bound = self._bound(self._call(operator if chosen is None else chosen.name))
        lines = [*self._copies(self._between), *self._either(bound), *self._copies(self._behind)]
        helpers = (
            *recurrent.common(site),
            *unbacked_helpers(site, {"_number_in_graph"}),
            *(Helper(name, part(PACKED, name), after=after, shared=True) for name, after in _AFTER.items()),
            self._operator(operator),
            *([] if self._test is None else [recurrent.operator(site, layer, self._plain)]),
            *([] if chosen is None else [chosen]),
        )
        return two_paths(site, [first, last], conditions, [_COMMENT, *lines], imports=("torch",), helpers=helpers)

    @property
    def _depth(self) -> int:
        return 1 if self._test is None else 2

    @property
    def _plain(self) -> str:
        """The name of the operator that runs the layer on what is not packed."""
        return operator_name(self._site, self._layer.attr)

    def _bound(self, call: str) -> list[str]:
        """The lines that call the operator and bind its results."""
        whole = self._padded is not None and self._padded.is_whole
        if not whole or len(self._ran.targets) == 1:
            return [f"{self._results()} = {call}"]
        name, last = (self._site.text(each) for each in (self._padded.targets[0], self._ran.targets[1]))  # type: ignore[union-attr]
        return [f"{name} = {call}", f"{name}, {last} = {name}[::2], {name}[1]"]

    def _either(self, bound: list[str]) -> list[str]:
        """The call on the packed sequence, and beside it the one on what is not packed where a test decides that."""
        if self._test is None:
            return bound
        if self._site.scripted:
            raise NotProven("TorchScript compiles the function as well, and a test says whether the sequence is packed")
        given = [self._own, *(self._site.text(each) for each in recurrent.arguments(self._ran.call))]
        targets = ", ".join(map(self._site.text, self._ran.targets))
        if self._ran.statement.value is not self._ran.call:
            targets = f"{targets}, *_"
        return [
            f"if {self._site.text(self._test)}:",
            *(f"    {line}" for line in bound),
            "else:",
            f"    {targets} = {self._plain}({', '.join(given)})",
        ]

    def _copies(self, statements: list[ast.stmt]) -> list[str]:
        """The lines of statements that the compile path runs as well."""
        whole = [ast.unparse(each) if isinstance(each, ast.If) else self._site.text(each) for each in statements]
        return [line for text in whole for line in text.split("\n")]

    def _options(self, call: ast.Call, names: list[str], plain: int) -> dict[str, ast.expr]:
        """What a call gives by name; everything but the first arguments has to be a constant, or held by the module."""
        given = dict(zip(names, call.args, strict=False)) | {word.arg or "": word.value for word in call.keywords}
        if set(given) - set(names) or any(isinstance(each, ast.Starred) for each in call.args):
            raise NotProven(f"the arguments of `{speculation.short(call)}` are not known")
        for name, value in given.items():
            held = isinstance(value, ast.Attribute) and is_one_name([value.value], self._own)
            free = name in names[:plain] or name == "total_length"
            signed = value.operand if isinstance(value, ast.UnaryOp) else value
            if not free and not held and not isinstance(signed, ast.Constant):
                raise NotProven(f"`{speculation.short(value)}` is no constant")
        if len(set(given) & set(names[:plain])) != plain:
            raise NotProven(f"the arguments of `{speculation.short(call)}` are not known")
        return given

    def _begin(self, body: Sequence[ast.stmt], position: int) -> ast.stmt:
        """The first statement to replace: what reads lengths back just before they are packed belongs to that."""
        given, packs = self._pack["lengths"], body[position]
        inside = packs.body[0] if isinstance(packs, ast.If) and len(packs.body) > 1 else None
        reads = inside or (body[position - 1] if position > 0 else None)
        found = None if reads is None else read_by(self._site, reads)
        name = given.id if isinstance(given, ast.Name) else ""
        if found is not None and is_name(reads.targets[0], name) and not self._is_used_later(name):  # type: ignore[union-attr]
            self._lengths = found
            return packs if inside is not None else reads  # type: ignore[return-value]
        if inside is not None:
            raise NotProven(f"`{speculation.short(inside)}` gives lengths that are used again")
        return packs

    def _is_used_later(self, name: str) -> bool:
        """True if something but the call that packs reads this name."""
        last = self._site.at(self._ran.statement if self._padded is None else self._padded.statement)
        inner = [self._pack["input"], *recurrent.arguments(self._ran.call), *self._pad.values()]
        bound = _names(self._padded.targets if self._padded is not None else [])
        if last is None or name in _names([*inner, *self._between, *self._behind]):
            return True
        return name not in bound and last.live_after(name)

    def _asked(self) -> list[str]:
        """What the header asks of the tensor whose numbers are the lengths."""
        if self._lengths is None:
            return []
        name = self._lengths.name
        asked = f"isinstance({name}, torch.Tensor)"
        return [asked if self._test is None else f"({name} is None or {asked})"]

    def _check_targets(self, body: Sequence[ast.stmt], position: int) -> None:
        """NotProven where something reads the packed sequences afterwards, or the results are not bound one by one."""
        padded = [] if self._padded is None else self._padded.targets
        last = self._site.at(self._ran.statement if self._padded is None else self._padded.statement)
        if last is None or len(self._ran.targets) > 2 or len(padded) > 2:
            raise NotProven("the results are not bound one by one")
        targets = (*self._ran.targets[1:], *padded)
        bound = {part.id for each in targets for part in walk(each) if isinstance(part, ast.Name)}
        if self._padded is not None and self._padded.is_whole and not isinstance(padded[0], ast.Name):
            raise NotProven(f"`{speculation.short(padded[0])}` is no name")
        if self._test is not None and (not padded or not _same_names(padded[0], self._ran.targets[0])):
            raise NotProven("the padded tensor has another name than what the layer gives")
        for target in (*self._packed.targets, self._ran.targets[0]):
            name = target.id if isinstance(target, ast.Name) else ""
            if name not in bound and last.live_after(name):
                raise NotProven(f"`{name}` is a packed sequence that is used again; manually use the padded one")
        self._check_order(padded)
        runs = self._ran.call.args[0]
        alike = self._test is None or _same_names(self._pack["input"], runs)
        if not alike and not (isinstance(runs, ast.Name) and _is_bound(self._site, body[:position], runs.id)):
            raise NotProven("the layer runs on something else where nothing is packed")

    def _check_order(self, padded: list[ast.expr]) -> None:
        """NotProven where a statement in between may not run before the others, or behind them."""
        lengths = self._pack["lengths"] if self._lengths is None else self._lengths.tensor
        packs = [self._pack["input"], lengths, *([] if self._test is None else [self._test])]
        if self._between and not all(is_plain(self._site, each) for each in packs):
            raise NotProven("something behind packing would run before what is packed is computed")
        bound = _names(self._between, stored=True) | _names(self._behind, stored=True)
        if not bound.isdisjoint(_names([*packs, *self._pad.values()]) - {self._out}):
            raise NotProven("a statement in between binds a name that packing or padding reads")
        if not _names(self._behind).isdisjoint(_names(padded)):
            raise NotProven("a statement in front of padding uses a name that it binds")

    @property
    def _out(self) -> str:
        """The name of what the layer gives, which nothing in between touches."""
        return getattr(self._ran.targets[0], "id", "")

    def _condition(self, site: Site) -> str:
        given = self._pack["input"]
        names = dict.fromkeys([given.id] if isinstance(given, ast.Name) else recurrent.names_in(site, given))
        if self._lengths is not None:
            names[self._lengths.name] = None
        lengths = self._pack["lengths"]
        while isinstance(lengths, (ast.Call, ast.Attribute)):
            lengths = lengths.func if isinstance(lengths, ast.Call) else lengths.value
        if self._lengths is None and isinstance(lengths, ast.Name) and site.evaluator.scope.is_local(lengths.id):
            names[lengths.id] = None
        if self._test is not None:
            names.update(dict.fromkeys(recurrent.names_in(site, self._ran.call.args[0])))
        # What is bound between packing and the layer cannot be asked before.
        own = _names(self._between, stored=True)
        for state in self._states():
            names.update((each, None) for each in recurrent.names_in(self._site, state) if each not in own)
        if not names:
            raise NotProven(f"cannot infer that `{speculation.short(self._pack['input'])}` is a Tensor")
        kind = kind_of(self._site, self._layer)
        return f'_fits_recurrent({self._own}, "{self._layer.attr}", torch.nn.{kind}, {", ".join(names)})'

    def _states(self) -> list[ast.expr]:
        return recurrent.arguments(self._ran.call)[1:]

    def _results(self) -> str:
        """The targets of the results in the order of the operator's: padded, the last states, lengths."""
        ran, padded = self._ran.targets, [] if self._padded is None else self._padded.targets
        return ", ".join(self._site.text(each) for each in (*padded[:1], *ran[1:], *padded[1:]))

    def _call(self, operator: str) -> str:
        site = self._site
        total = self._pad.get("total_length")
        lengths = site.text(self._pack["lengths"]) if self._lengths is None else self._lengths.text
        steps = f"_longest_in_graph({lengths})"
        if total is not None and not is_none(total):
            given_none = isinstance(total, (ast.Name, ast.Attribute))
            steps = f"{steps} if {site.text(total)} is None else {site.text(total)}" if given_none else site.text(total)
        given = [self._own, site.text(self._pack["input"]), lengths, steps, *map(site.text, self._states())]
        if self._padded is None:
            return site.call(f"{operator}(", [*given[:3], *given[4:]], deeper=self._depth, after=")")
        part = _TAKEN.get((len(self._ran.targets), 0 if self._padded.is_whole else len(self._padded.targets)), "")
        return site.call(f"{operator}(", given, deeper=self._depth, after=f"){part}")

    def _operator(self, operator: str) -> Helper:
        site, own = self._site, self._own
        name, kind = site.text(self._layer), kind_of(site, self._layer) or ""
        first = _text(self._pad.get("batch_first"))
        pack = _words(self._pack, ["batch_first", "enforce_sorted"])
        pad = _words(self._pad, ["batch_first", "padding_value"])
        state = {"LSTM": "(h, c)", "RNNBase": "last"}.get(kind, "h")
        whole = self._padded is not None
        steps = "steps, " if whole else ""
        shapes = f"_packed_shapes({name}, x, lengths, {'steps' if whole else 1}, {first}){'' if whole else '[1:-1]'}"
        source = [
            "@_one_operator(",
            f'    "{self._layer.attr}",',
            f"    shapes=lambda {own}, x, lengths, {steps}*_: {shapes},",
            f"    nested={(_NESTED if whole else _LAST)[kind]},",
            "    untraced=True,",
            ")",
            "@_with_own_gradient",
            f"def {operator}({own}, x, lengths, {steps}*state):",
            f'    """`{name}` on packed sequences as one operator for torch.compile."""',
            f"    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths{pack})",
            f"    {'out' if whole else '_'}, {state} = {name}(packed, *state)",
        ]
        if whole:
            source.append(f"    out, lengths = torch.nn.utils.rnn.pad_packed_sequence(out{pad}, total_length=steps)")
        source.append(f"    return out, {state}, lengths" if whole else f"    return {state}")
        after = (*definition_before(site), "_one_operator", "_packed_shapes", "_with_own_gradient")
        return Helper(operator, "\n".join(source), after=after)


def _names(nodes: Iterable[ast.AST], *, stored: bool = False) -> set[str]:
    """The names in nodes, or those that they bind."""
    names = (part for each in nodes for part in walk(each) if isinstance(part, ast.Name))
    return {each.id for each in names if not stored or not isinstance(each.ctx, ast.Load)}


def _is_bound(site: Site, before: Sequence[ast.stmt], name: str) -> bool:
    """True where a parameter has the name, or a statement that runs before in any case binds it."""
    if name in parameter_names(site.evaluator.scope.node):
        return True
    bound = [target for each in before if isinstance(each, ast.Assign) for target in each.targets]
    return any(is_name(target, name) for target in bound)


def _same_names(one: ast.expr, other: ast.expr) -> bool:
    return isinstance(one, ast.Name) and is_name(other, one.id)


_TAKEN = {(1, 0): "[::2]", (1, 1): "[0]", (2, 1): "[:2]", (1, 2): "[::2]"}
"""What is taken of the results, by how many targets the layer and padding have; 0 is one for all that padding gives."""
_NESTED = {
    "LSTM": "(0, (1, 2), 3)",
    "GRU": "(0, 1, 2)",
    "RNN": "(0, 1, 2)",
    "RNNBase": "{3: (0, 1, 2), 4: (0, (1, 2), 3)}",
}
"""The padded tensor, the last states, and lengths."""
_LAST = {"LSTM": "(0, 1)", "GRU": "0", "RNN": "0", "RNNBase": "{1: 0, 2: (0, 1)}"}
"""The last states alone."""
_AFTER = {
    "_packed_shapes": ("_recurrent_shapes",),
    "_with_own_gradient": (),
    "_longest_in_graph": ("_number_in_graph",),
}


def _text(node: ast.expr | None) -> str:
    return "False" if node is None else ast.unparse(node)


def _words(given: dict[str, ast.expr], names: list[str]) -> str:
    return "".join(f", {name}={ast.unparse(given[name])}" for name in names if name in given)
