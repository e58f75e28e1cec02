"""The fix for a statement that reads Python integers out of a tensor: copies of the numbers, and two paths."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.scope import parameters, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.rules.framework.edits import judged, line_of, path_beside, under
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.unique_callee import sure_calls
from graphmend_codemod.rules.proofs.memory.shared_memory import demand_no_write
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.known_sizes import is_builtin
from graphmend_codemod.rules.proofs.numbers.integers.held import AS_SIZE, Copy
from graphmend_codemod.rules.proofs.numbers.integers.held_in_method import NumbersHere
from graphmend_codemod.rules.proofs.numbers.integers.number_reads import NumberRead, NumberReads
from graphmend_codemod.rules.proofs.numbers.integers.number_uses import NumberUses

_BUILTINS = ("all", "isinstance", "int", "len", "list", "map", "max", "min", "sum", "tuple", "type")
_COMMENT = "# The numbers that the tensor was made of: they would have to be read back."
_AS_SIZE = """\
def _as_size(number):
    \"\"\"The number as a size; torch takes a 0-dim integer tensor for one as it is.\"\"\"
    whole = {torch}.is_tensor(number) and number.dim() == 0 and number.dtype == {torch}.int64
    return number if whole else int(number)"""


def read_numbers(site: Site, node: ast.stmt) -> Diagnostic | None:
    """What a rule says of a statement: the numbers that it reads out of tensors which were made of them."""
    own = calls_in(site.source.text).at(site.evaluator.scope.node.lineno)
    if own is None:
        return None
    numbers = NumbersHere(site, own)
    reader = NumberReads(numbers, own, node)
    try:
        reads = reader.found()
    except NotProven as reason:
        return Diagnostic(f"reads numbers out of a tensor (device sync): `{short(reader.last)}`", declined=str(reason))
    if not reads:
        return None
    message = f"reads numbers out of a tensor that was made of them (device sync): `{short(reads[0].node)}`"
    return judged(message, lambda: _edit(site, node, numbers, reads))


def _edit(site: Site, node: ast.stmt, numbers: NumbersHere, reads: Sequence[NumberRead]) -> Edit:
    """The statement with the numbers in place of what reads them, and what these need."""
    copies = _needed(numbers, reads)
    said = [part for each in reads for part in (each.text, *each.asked)]
    said += [part for each in copies for part in (each.text, *each.asked)]
    texts = " ".join(said)
    for name in _BUILTINS:
        if re.search(rf"\b{name}\b", texts) and not is_builtin(site, name):
            raise NotProven(name_taken(name))
    if site.torch is None:
        raise NotProven(name_taken())
    swapped = next((each for each in copies if _is_swapped(numbers, node, each, reads)), None)
    others = [each for each in copies if each is not swapped]
    for each in others:
        if each.once is not None:
            raise NotProven(each.once)
        _demand_same(site, numbers, each)
    replacements = [*_kept(site, others)]
    if "end_of_" in texts:
        replacements += numbers.ends.replacements.values()
    methods = {name: text for name, text in numbers.attributes.methods.items() if f".{name}()" in texts}
    if methods:
        replacements.append(_with_methods(site, numbers, methods))
    replacements += _paths(site, node, reads, swapped)
    helpers = [each for each in numbers.helpers.values() if each.name in texts]
    if AS_SIZE in texts:
        helpers.append(Helper(AS_SIZE, _AS_SIZE.format(torch=site.torch), after=(site.torch,)))
    handed = any(each.handed for each in reads)
    return Edit(tuple(replacements), imports=site.imports, helpers=tuple(helpers), reaches=handed)


def _paths(site: Site, node: ast.stmt, reads: Sequence[NumberRead], swapped: Copy | None) -> Iterable[Replacement]:
    """The statement with its compile path; in front of it, or in there, the list in place of a tensor."""
    asks = "is_dynamo_compiling" if any(each.scripted for each in reads) else ""
    compiling = f"{site.torch}.compiler.{asks}()" if asks else site.compiling
    conditions = [compiling, *dict.fromkeys(part for each in reads for part in each.asked)]
    if isinstance(node, ast.For):
        yield _chosen(site, reads[0], " and ".join(conditions))
        return
    name = swapped.name if swapped is not None else ""
    texts = {each: re.sub(rf"\b{name}\b", swapped.tensor, each.text) if swapped else each.text for each in reads}
    line = line_of(site.but(written={id(each.node): (each.node, text) for each, text in texts.items()}), node)
    if swapped is None:
        yield path_beside(site, node, conditions, [_COMMENT, line])
    else:
        lines = [_COMMENT, f"{swapped.tensor} = {swapped.text}", line]
        yield path_beside(site, [swapped.statement, node], [compiling, *swapped.asked], lines)


def _chosen(site: Site, read: NumberRead, asked: str) -> Replacement:
    """What the head of a loop goes through: the numbers while tracing, else what the author wrote."""
    span, original = site.span(read.node), site.original(read.node)
    if site.is_too_long(len(site.source.line(span.start_line)) + len(f"{read.text} if {asked} else ")):
        return Replacement(span, (f"(\n    {read.text}\n    if {asked}\n    else ", original, "\n)"))
    return Replacement(span, (f"{read.text} if {asked} else ", original))


def _is_swapped(numbers: NumbersHere, node: ast.stmt, copy: Copy, reads: Sequence[NumberRead]) -> bool:
    """True for a tensor of which nothing is used but the sizes in these reads: a list can be made in its place.

    Both stand in one compile path: what comes later may run in eager mode, where the graph breaks in between.
    """
    if not copy.text or not all(each.sizes and each.asked == (copy.name,) for each in reads):
        return False
    if numbers.blocks.following(copy.statement)[:1] != [node]:
        return False
    inside = {id(part) for each in reads for part in walk(each.node)}
    used = [part for part in walk(numbers.function) if is_name(part, copy.tensor)]
    given = any(each.arg == copy.tensor for each in parameters(numbers.function))
    bound = [part for part in used if not isinstance(part.ctx, ast.Load)]
    return not given and len(bound) == 1 and all(id(part) in inside for part in used if part is not bound[0])


def _needed(numbers: NumbersHere, reads: Iterable[NumberRead]) -> list[Copy]:
    """The copies that the text of reads names, and those that these need."""
    todo = [part for each in reads for part in (each.text, *each.asked)]
    found: list[Copy] = []
    while todo:
        text = todo.pop()
        for each in numbers.copies:
            if each not in found and re.search(rf"\b{each.name}\b", text):
                found.append(each)
                todo += [each.text, *each.asked]
    return [each for each in numbers.copies if each in found]


def _demand_same(site: Site, numbers: NumbersHere, copy: Copy) -> None:
    """NotProven where the tensor may be written between what makes it and what reads it."""
    if copy.is_array:
        uses = NumberUses(sure_calls(site), site.resolve_global).several(numbers.own, copy.tensor)
        if uses.reason is not None:
            raise NotProven(
                f"`{copy.tensor}` may be used as an array; index the Python list of its numbers for the bounds"
            )
        return
    try:
        demand_no_write(site, copy.statement, {copy.tensor}, set(), copy.readers)
    except NotProven as reason:
        raise NotProven(str(reason).replace("the tensor or", f"`{copy.tensor}` or")) from None


def _kept(site: Site, copies: Sequence[Copy]) -> Iterable[Replacement]:
    """The copies, each before the statement that makes the tensor."""
    for statement in dict.fromkeys(each.statement for each in copies if each.text):
        here = site.but(place=site.place._replace(statement=statement))
        lines = [_line(here, each) for each in copies if each.statement is statement and each.text]
        yield Replacement(site.span(statement), ("".join(f"{line}\n" for line in lines), site.original(statement)))


def _line(here: Site, copy: Copy) -> str:
    asks = [here.compiling, *dict.fromkeys(copy.asked)]
    asked = " and ".join(asks)
    line = f"{copy.name} = {copy.text} if {asked} else None"
    if not here.is_too_long(here.indentation() + len(line)):
        return line
    parts = [copy.text, f"if {asked}", "else None"]
    if not any(here.is_too_long(here.indentation(1) + len(part)) for part in parts):
        return f"{copy.name} = (\n    {parts[0]}\n    {parts[1]}\n    {parts[2]}\n)"
    header = here.header("if", [here.broken(each, 1) for each in asks])
    return f"{copy.name} = None\n" + under(header, f"{copy.name} = {here.broken(copy.text, 1)}")


def _with_methods(site: Site, numbers: NumbersHere, methods: dict[str, str]) -> Replacement:
    """The constructor, and below it what gives the numbers of its tensors."""
    constructor, owner = numbers.attributes.constructor, numbers.attributes.owner
    assert constructor is not None
    assert owner is not None
    there = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)}
    here = site.but(place=site.place._replace(statement=constructor))
    texts = []
    for name, text in methods.items():
        tensor = name.removeprefix("_").removesuffix("_as_int")
        says = f'"""The Python number that `{tensor}` was made of."""'
        source = f"def {name}(self) -> int:\n    {says}\n    return {here.broken(text, 1)}"
        if name not in there:
            texts.append(f"\n\n{source}")
        elif ast.unparse(there[name]) != ast.unparse(ast.parse(source)):
            raise NotProven(f"`{name}` is already used for something else")
    return Replacement(site.span(constructor), (site.original(constructor), *texts))
