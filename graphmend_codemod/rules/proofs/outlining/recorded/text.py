"""The compile path of statements that a recorded run tells enough of, and the operator that it calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from graphmend_codemod.core.findings import Edit, Helper, Original, Replacement
from graphmend_codemod.rules.framework.edits import under
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site_text import tuple_of
from graphmend_codemod.rules.proofs.outlining.custom_op import NAMING, call, definition_before, moved, operator_name
from graphmend_codemod.rules.proofs.outlining.recorded.facts import tensors_of
from graphmend_codemod.rules.proofs.outlining.recorded.moments import ARRAY, AUTOCAST, RESULT, TENSOR, Fact
from graphmend_codemod.rules.proofs.outlining.recorded.region import Region
from graphmend_codemod.rules.proofs.outlining.recorded.sizes import Given, Sizes
from graphmend_codemod.rules.proofs.outlining.texts import recorded as texts

_COMMENT = "# What this gives is known from {} calls of a recorded run: torch.compile calls it as one operator."
_BOUND = frozenset({"builtins.method", "functools.partial"})
_DTYPES = frozenset(
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex32 complex64 complex128".split()
)


def edit(region: Region) -> tuple[Edit, tuple[str, ...], bool]:
    """The compile path in front of the statements, and what its conditions and the sizes of its results are made of.

    Then whether what goes in tells all these sizes.
    NotProven where the run does not tell what comes out.
    """
    site = region.site
    demand_torch(site)
    text = _Text(region)
    made = text.edit()
    return made, (*made.recorded, *text.promises), text.is_sized


class _Text:
    def __init__(self, region: Region) -> None:
        self._region, self._site, self._count = region, region.site, len(region.seen)
        names = [each.text for each in region.results if each.text != RESULT]
        self._operator = operator_name(self._site, names[0] if names else self._site.function.rpartition(".")[2])
        self._settings = list(region.settings())
        self._sizes = Sizes([*region.given, *self._settings])
        self._results = [each for result in region.results for each in _several(result)]
        if not self._results:
            raise NotProven("it gives nothing, so what it does is to change something")
        self._gradient = any(fact[0] == TENSOR and fact[4] for each in self._results for fact in each.facts)
        self._held = region.held() if self._gradient else []
        self._check_gradient()
        draws = any(each.random[1] for each in region.seen)
        self._features = ("gradient", *["draws"] * draws) if self._gradient else ()
        objects = [each for each in region.given if each.kind == "object"]
        self._filled = [each.text for each in objects if all(fact[6] for fact in each.facts)]
        self._untrained = list(region.hold_nothing()) if self._gradient else []
        self.promises = [self._promise(each) for each in self._results]

    @property
    def is_sized(self) -> bool:
        """True where no size of a result is one that only the data tells."""
        return not self._sizes.free

    def _check_gradient(self) -> None:
        """NotProven where a result needed a gradient that nothing did which goes in: a function may hold parameters, or
        the tensors themselves that go in, and what the operator gives it would be others."""
        for given in self._region.given if self._gradient else ():
            if any(fact[0] == "object" and fact[1] in _BOUND for fact in given.facts):
                raise NotProven(f"`{given.text}` is bound to an object that may hold what needs a gradient")
        for number in range(self._count if not self._held else 0):
            results = [each.facts[number] for each in self._results]
            needed = any(fact[0] == TENSOR and fact[4] for fact in results)
            if needed and not any(each.facts[number][4] for each in self._tensors()):
                raise NotProven("what it gives needs a gradient, and nothing that goes into it does")

    def _tensors(self) -> list[Given]:
        return [each for given in self._region.given for each in _tensors(given)]

    def edit(self) -> Edit:
        site, region = self._site, self._region
        given = [each.text for each in region.given]
        start, end = site.span(region.statements[0]), site.span(region.statements[-1])
        whole = start.through(end)
        fits = call(site, f"{self._operator}_fits", given, 1).lstrip()
        empty = [f"not {each}" for each in region.words]
        header = site.header("if", ["torch.compiler.is_dynamo_compiling()", *empty, fits])
        comment = _COMMENT.format(self._count)
        path = under(header, comment, *self._path())
        replacement = Replacement(whole, (path, "\nelse:\n    ", Original(whole, 1)))
        if region.returns:
            replacement = Replacement(whole, (path, "\n", Original(whole)))
        helpers = tuple(self._helpers(given))
        return Edit((replacement,), imports=site.imports, helpers=helpers, recorded=(*self._conditions(), *empty))

    def _path(self) -> Iterator[str]:
        """The lines that call the operator and bind what it gives."""
        handed = [f"torch.as_tensor({each.text})" if each.kind == ARRAY else each.text for each in self._region.given]
        called = f"{self._operator}({', '.join(handed)})"
        results, count = self._region.results, len(self._results)
        plain = all(each.kind == TENSOR for each in results)
        if count == 1 and len(results) == 1 and results[0].kind in (TENSOR, ARRAY):
            found = iter([called])
        elif plain and not self._region.returns:
            yield f"{', '.join(each.text for each in results)} = {called}"
            return
        else:
            name = self._site.free_name("found")
            yield f"{name} = {called}"
            found = iter([name] if count == 1 else [f"{name}[{number}]" for number in range(count)])
        for each in results:
            value = _put_together(each.facts[0], found)
            yield f"return {value}" if each.text == RESULT else f"{each.text} = {value}"

    def _helpers(self, given: Sequence[str]) -> Iterator[Helper]:
        site, region, name = self._site, self._region, self._operator
        yield NAMING
        if self._filled:
            yield Helper("_are_made", texts.MADE, shared=True)
        if any(len({each[4] for each in one.facts} | {0}) == 2 for one in self._region.modules()):
            yield Helper("_elements_of", texts.ELEMENTS, shared=True)
        if self._untrained:
            yield Helper("_holds_no_gradient", texts.UNTRAINED, shared=True)
        if region.apart.layers:
            yield Helper("_is_apart", texts.APART, shared=True)
        yield Helper("_is_like_recorded", texts.LIKE, shared=True, since="compiler.is_exporting")
        if any(each.kind == ARRAY for each in region.given):
            yield Helper("_is_array_like_recorded", texts.ARRAY_LIKE, shared=True)
        decorator = texts.NAMES[self._features]
        yield Helper(decorator, texts.operator(*self._features), after=("_operator_name",), shared=True)
        after = definition_before(site)
        yield Helper(f"{name}_fits", self._fits(given), after=after)
        yield Helper(f"{name}_results", self._promised(given), after=after)
        if self._held:
            yield Helper(f"{name}_held", self._holding(given), after=after)
        yield Helper(name, self._code(decorator, given), after=(*after, decorator, f"{name}_results"))

    def _holding(self, given: Sequence[str]) -> str:
        lines = [
            f"def {self._operator}_held({', '.join(given)}):",
            '    """The parameters in what is given."""',
            f"    return [{', '.join(self._held)}]",
        ]
        return "\n".join(lines)

    def _code(self, decorator: str, given: Sequence[str]) -> str:
        arrays = [each.text for each in self._region.given if each.kind == ARRAY]
        forms = [_form_of(each.facts[0]) for each in self._region.results]
        form = forms[0] if self._region.returns else f"[{', '.join(forms)}]"
        made = [f"{self._operator}_results", str(len(self._results)), f'"{form}"']
        made += [f"{self._operator}_held"] * bool(self._held)
        lines = [
            f"@{decorator}({', '.join(made)})",
            f"def {self._operator}({', '.join(given)}):",
            *(f"    {each} = {{}}" for each in self._region.words),
            *(f"    {each} = {each}.numpy()" for each in arrays),
            moved(self._site, self._region.statements),
        ]
        if not self._region.returns:
            names = [each.text for each in self._region.results]
            lines.append(f"    return [{', '.join(names)}]")
        return "\n".join(lines)

    def _promised(self, given: Sequence[str]) -> str:
        rows = [f"        {each}," for each in self.promises]
        alone = f"    return [{', '.join(self.promises)}]"
        short = len(self.promises) == 1 and len(alone) <= self._site.line_limit
        return "\n".join(
            [
                f"def {self._operator}_results({', '.join(given)}):",
                f'    """Sizes, dtype, device of each result, as {self._count} recorded calls had them."""',
                *([alone] if short else ["    return [", *rows, "    ]"]),
            ]
        )

    def _promise(self, result: Given) -> str:
        """`((x.shape[0], 3), torch.float32, x.device)`."""
        facts = result.facts
        ranks = {len(each[2]) for each in facts}
        sizes = [self._sizes.explain(tuple(each[2][place] for each in facts)) for place in range(ranks.pop())]
        together = tuple_of(sizes)
        dtype = self._followed([str(each[1]) for each in facts], "dtype", 1)
        device = '"cpu"' if result.kind == ARRAY else self._followed([str(each[3]) for each in facts], "device", 3)
        return f"({together}, {dtype}, {device})"

    def _followed(self, values: Sequence[str], attribute: str, place: int) -> str:
        """A dtype or device that was the same in all calls, or that of a tensor that went in."""
        for each in self._region.given if len(set(values)) > 1 else ():
            if each.kind == attribute and [str(fact[1]) for fact in each.facts] == list(values):
                return each.text
        tensors = [each for each in self._region.given if each.kind == TENSOR]
        for each in tensors if attribute == "device" or len(set(values)) > 1 else ():
            if [str(fact[place]) for fact in each.facts] == list(values):
                return f"{each.text}.{attribute}"
        if len(set(values)) > 1:
            raise NotProven(f"the {attribute} of a result was {' and '.join(sorted(set(values)))} in the recorded run")
        return f'"{values[0]}"' if attribute == "device" else _dtype(values[0])

    def _conditions(self) -> list[str]:
        """What is asked of what goes in: to be like in the recorded calls."""
        own = self._region.owner
        asked = [*self._region.given, *self._settings]
        conditions = [*(one for each in asked for one in _like(each)), *self._sizes.pins]
        conditions += [
            f'not hasattr({each.text}, "__array__")'  # a number of NumPy's would be a constant of the graph
            for each in self._region.given
            if each.kind == "object" and each.text != own
        ]
        if self._filled:
            conditions.append(f"_are_made({', '.join(self._filled)})")
        for each in self._region.modules():
            conditions += [f"isinstance({each.text}, torch.nn.Module)"] * (each.text != own)
            conditions += _module_like(each)
        conditions += [f"_holds_no_gradient({each})" for each in self._untrained]
        apart = self._region.apart
        conditions += [f"type({each}) in (bool, int, float, str)" for each in apart.plain]
        if apart.layers:
            read, layers = (" ".join(sorted(each)) for each in (apart.read or (), apart.layers))
            methods = f', "{" ".join(sorted(apart.methods))}", __name__' if apart.methods else ""
            conditions.append(f'_is_apart({own}, "{read}", "{layers}"{methods})')
        return [*conditions, *self._autocast(), *self._gradients()]

    def _fits(self, given: Sequence[str]) -> str:
        conditions = list(self._conditions()) or ["not torch.compiler.is_exporting()"]
        rows = [f"        {'and ' if number else ''}{each}" for number, each in enumerate(conditions)]
        alone = f"    return {conditions[0]}"
        short = len(conditions) == 1 and len(alone) <= self._site.line_limit
        return "\n".join(
            [
                f"def {self._operator}_fits({', '.join(given)}) -> bool:",
                f'    """True for what is like the {self._count} recorded calls: known while tracing."""',
                *([alone] if short else ["    return (", *rows, "    )"]),
            ]
        )

    def _autocast(self) -> Iterator[str]:
        """The conditions under which autocast gives a result the dtype that it had."""
        modes = [dict(each.before.held[AUTOCAST][1]) for each in self._region.seen]
        if all(not _is_smooth(str(fact[1])) for each in self._results for fact in each.facts):
            return
        if any(each != modes[0] for each in modes):
            raise NotProven("some calls of the recorded run were under autocast, and others were not")
        tensors = self._tensors()
        for kind in dict.fromkeys(str(fact[3]) for each in tensors for fact in each.facts):
            asked = f'torch.is_autocast_enabled("{kind}")'
            yield (
                f'{asked} and torch.get_autocast_dtype("{kind}") == {modes[0][kind]}'
                if kind in modes[0]
                else f"not {asked}"
            )

    def _gradients(self) -> Iterator[str]:
        """The condition under which a gradient is needed as in the run, or none, unless the run shows that none comes
        out. What goes in tells, where it is all that a result may have its gradient from."""
        tensors, seen = self._tensors(), self._region.seen
        needed = [f"{each.text}.requires_grad" for each in tensors if _is_smooth(str(each.facts[0][1]))]
        if self._gradient:
            if not self._held:
                yield f"({' or '.join(['not torch.is_grad_enabled()', *needed])})"
            return
        if all(not _is_smooth(str(fact[1])) for each in self._results for fact in each.facts):
            return
        if all(each.kind == ARRAY for each in self._results):
            return
        if any(one.before.gradients and any(each.facts[n][4] for each in tensors) for n, one in enumerate(seen)):
            return
        objects = any(each.kind == "object" for each in self._region.given)  # they may hold parameters
        if objects and not any(each.before.gradients for each in seen):
            yield "not torch.is_grad_enabled()"
        elif needed := [*needed, *self._region.untrained()]:
            asked = " or ".join(needed)
            yield f"not (torch.is_grad_enabled() and {f'({asked})' if len(needed) > 1 else asked})"


def _tensors(given: Given) -> Iterator[Given]:
    """The tensors in what is given."""
    if given.kind == TENSOR:
        yield given
    elif given.kind in ("list", "tuple"):
        for place in range(len(given.facts[0][1])):
            yield from _tensors(Given(f"{given.text}[{place}]", tuple(each[1][place] for each in given.facts)))


def _is_smooth(dtype: str) -> bool:
    """True where a tensor of the dtype may need a gradient."""
    return dtype.startswith(("float", "bfloat", "complex"))


def _several(result: Given) -> list[Given]:
    """A result for each tensor in one."""
    every = [list(tensors_of(fact)) for fact in result.facts]
    return [Given(f"{result.text} {number}", tuple(each)) for number, each in enumerate(zip(*every, strict=True))]


def _put_together(fact: Fact, found: Iterator[str]) -> str:
    if fact[0] == TENSOR:
        return next(found)
    if fact[0] == ARRAY:
        return f"{next(found)}.numpy()"
    if fact[0] not in ("list", "tuple"):
        return "None"
    inner = [_put_together(each, found) for each in fact[1]]
    if fact[0] == "list":
        return f"[{', '.join(inner)}]"
    return tuple_of(inner)


def _form_of(fact: Fact) -> str:
    """How a result is put together, as the operator compares it: `[tensor, None]`."""
    if fact[0] in ("list", "tuple"):
        inner = ", ".join(map(_form_of, fact[1]))
        return f"[{inner}]" if fact[0] == "list" else f"({inner})"
    return fact[0] if fact[0] in (TENSOR, ARRAY) else "None"


def _dtype(name: str) -> str:
    if name not in _DTYPES:
        raise NotProven(f"torch has no dtype for `{name}`")
    return f"torch.{name}"


def _like(given: Given) -> Iterator[str]:
    """The conditions under which what is given is of the recorded kind."""
    text, facts = given.text, given.facts
    if given.kind in (TENSOR, ARRAY):
        dtypes = list(dict.fromkeys(str(each[1]) for each in facts))
        rank = len(facts[0][2])
        first = _dtype(dtypes[0]) if len(dtypes) == 1 else f'getattr({text}, "dtype", None)'
        if given.kind == ARRAY:
            if len(dtypes) > 1:
                raise NotProven(f"`{text}` was of {' and '.join(dtypes)} in the recorded run")
            yield f"_is_array_like_recorded({text}, {first}, {rank})"
            return
        devices = dict.fromkeys(str(each[3]) for each in facts)
        if len(devices) > 1:
            raise NotProven(f"`{text}` was on {' and '.join(devices)} in the recorded run")
        yield f'_is_like_recorded({text}, {first}, {rank}, "{next(iter(devices))}")'
        if len(dtypes) > 1:
            yield f"{text}.dtype in ({', '.join(map(_dtype, dtypes))})"
    elif given.kind in ("list", "tuple"):
        yield f"isinstance({text}, {given.kind}) and len({text}) == {len(facts[0][1])}"
        for place in range(len(facts[0][1])):
            yield from _like(Given(f"{text}[{place}]", tuple(each[1][place] for each in facts)))
    elif given.kind == "constant":
        values = list(dict.fromkeys(each[1] for each in facts))
        yield f"{text} is {values[0]}" if len(values) == 1 else f"({text} is None or type({text}) is bool)"
    elif given.kind in ("dtype", "device"):
        values = list(dict.fromkeys(str(each[1]) for each in facts))
        spelled = _dtype(values[0]) if given.kind == "dtype" else f'torch.device("{values[0]}")'
        yield f"{text} == {spelled}" if len(values) == 1 else f"isinstance({text}, torch.{given.kind})"
    elif given.kind in ("int", "float", "str"):
        yield f"type({text}) is {given.kind}"
        yield from _value_like(given)


def _module_like(given: Given) -> Iterator[str]:
    """The conditions under which a module is like in the run: of as many parameters, and in training or not."""
    modes, elements = {each[7] for each in given.facts}, {each[4] for each in given.facts}
    if len(modes) == 1:
        yield f"{given.text}.training is {modes.pop()}"
    if len(elements) == 1 and elements != {0}:
        yield f"_elements_of({given.text}) == {elements.pop()}"


def _value_like(given: Given) -> Iterator[str]:
    """The condition for a number or word that was the same in all calls, on which anything may depend; or one of the
    words that were."""
    values = list(dict.fromkeys(each[1] for each in given.facts)) if given.kind != "int" else []
    if given.kind == "str":
        words = [json.dumps(each) for each in values]
        yield f"{given.text} == {words[0]}" if len(words) == 1 else f"{given.text} in ({', '.join(words)})"
    elif len(values) == 1 and values[0] != "nan":
        number = f'float("{values[0]}")' if "inf" in values[0] else values[0]
        yield f"{given.text} == {number}"
