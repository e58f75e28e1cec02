"""Custom operators as text: what torch.compile calls as a whole in the place of code that it cannot trace."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

from graphmend_codemod.analysis.patterns import all_names, rebinds, stored_names
from graphmend_codemod.analysis.scope import SCOPES, parameters, walk, walk_scope, with_plain_assignments
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.rules.framework.edits import CONSTANT
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.framework.site_text import tuple_of_words
from graphmend_codemod.rules.proofs.outlining.texts import functions as of_functions
from graphmend_codemod.rules.proofs.outlining.texts import part as text_part
from graphmend_codemod.rules.proofs.outlining.texts.layers import FITS, ONE_OPERATOR, PACKED, PLAIN

NAMING = Helper(
    "_operator_name",
    '''\
def _operator_name(name: str, file: str) -> str:
    """The full name of an operator of a file with this `__name__`: no other has it, however often that is loaded."""
    space = "".join(each if each.isascii() and each.isalnum() else f"_{ord(each)}_" for each in f"in_{file}")
    number, free = 1, name
    while hasattr(getattr(torch.ops, space), free):
        number += 1
        free = f"{name}_{number}"
    return f"{space}::{free}"''',
    shared=True,
    since="library.custom_op",
)
"""The function that operators of a file get their names from; it has to come before them in an edit."""
_LEFT = Helper(
    "_left_to_its_callers",
    f'''\
@{CONSTANT.name}
def _left_to_its_callers(function) -> None:
    """None; and torch.compile traces `function` within its callers alone, where a graph break in it is one break."""
    skip = getattr(torch._dynamo.eval_frame, "skip_code", None)
    if skip is not None:
        skip(function.__code__)''',
    after=(CONSTANT.name,),
    shared=True,
)
LEFT_TO_CALLERS = (CONSTANT, _LEFT)
"""For a function that holds statements which stood in another one, where torch.compile does not call its operator.

A graph break in a function breaks the graph of its caller, and then again its own, unless that is not traced. Torch has
no public function for this: without the one that it has, the graph breaks once more than it did.
"""
OWN_GRADIENT = Helper("_with_own_gradient", text_part(PACKED, "_with_own_gradient"), shared=True)
"""The decorator of code that draws random numbers: for dropout of a transposed tensor, `torch.func.vjp` draws another
mask than the first run had (torch 2.13)."""
_TAG = "cudagraph_unsafe"
_TAGGED_SINCE = (2, 9)


@dataclass(frozen=True)
class Argument:
    """One argument of an operator. `schema` is its type for torch, `annotation` for people.

    `given` is what the call hands over, and `conditions` hold of it while torch.compile traces. `attribute` is the name
    of the attribute of the instance that the operator gets as a number.
    """

    name: str
    schema: str
    annotation: str
    given: str = ""
    conditions: tuple[str, ...] = ()
    attribute: str = ""

    @property
    def described(self) -> str:
        """The way the operator's schema spells it."""
        return f"{self.schema} {self.name}"


def tensor(site: Site, name: str) -> Argument:
    """A tensor that is only read."""
    return Argument(name, "Tensor", f"{site.torch}.Tensor", name)


def one_operator(site: Site, *between: Helper) -> tuple[Helper, ...]:
    """The functions that make an operator of a function of the file; `between` come before the last one."""
    return (
        NAMING,
        Helper("_holds_plain_parts", PLAIN, shared=True),
        Helper("_fits_an_operator", FITS, after=("_holds_plain_parts",), shared=True, since="compiler.is_exporting"),
        *between,
        Helper("_one_operator", ONE_OPERATOR, after=("_operator_name", "_fits_an_operator"), shared=True),
    )


def calling(operator: str, decorator: str, takes: str, called: str, statement: str) -> str:
    """The definition of an operator that calls `code`, the function or method `called` of the file.

    It is the one of the file whatever is put in its place later: a wrapper would run around the operator and inside.
    """
    about = f'    """`{called}` as one operator for torch.compile."""'
    return "\n".join([f"@{decorator}", f"def {operator}({takes}, code={called}):", about, f"    {statement}"])


def decorator(site: Site, operator: str, schema: str, changed: Sequence[str] = ()) -> list[str]:
    """The lines that make a function the operator `operator`, which changes the arguments `changed`.

    An operator for code that depends on data waits for the device, which the recording of a CUDA graph forbids. A torch
    that has no tag for that imports the module all the same.
    """
    return [
        f"@{site.torch}.library.custom_op(",
        f'    _operator_name("{operator}", __name__),',
        f"    mutates_args={tuple_of_words(changed)},",
        *schema_lines(site, schema),
        *_tags(site),
        ")",
    ]


def _tags(site: Site) -> list[str]:
    """The keyword argument `tags`, only where torch has the tag if it may have none."""
    given, target = f"({site.torch}.Tag.{_TAG},)", site.settings.target_torch
    if target is not None and target >= _TAGGED_SINCE:
        return [f"    tags={given},"]
    parts = (f'{{"tags": {given}}}', f'if hasattr({site.torch}.Tag, "{_TAG}")', "else {}")
    line = f"    **({' '.join(parts)}),"
    return [line] if len(line) <= site.line_limit else ["    **(", *(f"        {part}" for part in parts), "    ),"]


def nested(count: int) -> str:
    """What the decorator of an operator with several results says of them."""
    return "" if count == 1 else f", nested=({', '.join(map(str, range(count)))})"


def schema_lines(site: Site, schema: str) -> list[str]:
    """The keyword argument `schema`, broken after commas where it is too long for a line."""
    line = f'    schema="{schema}",'
    if len(line) <= site.line_limit:
        return [line]
    pieces, rows = schema.split(", "), [""]
    for number, piece in enumerate(pieces):
        text = piece + (", " if number < len(pieces) - 1 else "")
        if rows[-1] and len(rows[-1]) + len(text) + 10 > site.line_limit:
            rows.append("")
        rows[-1] += text
    return ["    schema=(", *(f'        "{row}"' for row in rows), "    ),"]


def def_line(name: str, given: Sequence[str], limit: int = 79) -> str:
    """`def name(given):`, in several lines where it is longer than the limit."""
    line = f"def {name}({', '.join(given)}):"
    return line if len(line) <= limit else "\n".join([f"def {name}(", *(f"    {each}," for each in given), "):"])


def head(site: Site, name: str, arguments: Sequence[Argument], returns: str) -> str:
    """`def name(...) -> ...:`, the way black breaks it."""
    typed = [f"{each.name}: {each.annotation}" if each.annotation else each.name for each in arguments]
    line = f"def {name}({', '.join(typed)}) -> {returns}:"
    if len(line) <= site.line_limit:
        return line
    return "\n".join([f"def {name}(", *(f"    {each}," for each in typed), f") -> {returns}:"])


def call(site: Site, function: str, given: Sequence[str], deeper: int) -> str:
    """A call in a definition at the top level, the way black breaks it; `deeper` is the depth of its line."""
    start = " " * 4 * deeper
    together = ", ".join(given)
    if len(f"{start}{function}({together})") <= site.line_limit:
        return f"{start}{function}({together})"
    inner = f"{start}    "
    if len(inner + together) <= site.line_limit:
        return "\n".join([f"{start}{function}(", inner + together, f"{start})"])
    return "\n".join([f"{start}{function}(", *(f"{inner}{each}," for each in given), f"{start})"])


def fitting(site: Site, function: str, conditions: Sequence[str]) -> str:
    """The header in `function` under which an operator is called; otherwise it is left to its callers."""
    asked, otherwise = f"{site.torch}.compiler.is_dynamo_compiling()", f"{_LEFT.name}({function})"
    line = f"    if {asked} and ({' and '.join(conditions)} or {otherwise}):"
    if len(line) <= site.line_limit and "\n" not in line:
        return line
    first, *rest = conditions
    lines = [first, *(f"and {each}" for each in rest), f"or {otherwise}"]
    return "\n".join([f"    if {asked} and (", *(f"        {each}" for each in lines), "    ):"])


def definition_before(site: Site) -> tuple[str, ...]:
    """The name of the definition before the one that holds the loop, at the top of the module."""
    tops = [(each.line, each.qualname) for each in site.summary.classes if "." not in each.qualname]
    tops += [(each.line, each.qualname) for each in site.summary.functions if each.qualname.isidentifier()]
    line = site.evaluator.scope.node.lineno
    before = sorted(top for top in tops if top[0] <= line and top[1] != site.function.partition(".")[0])
    return (before[-1][1],) if before else ()


def moved(site: Site, statements: Sequence[ast.stmt]) -> str:
    """The statements' own text, one level deep. NotProven where the text cannot move as it is."""
    first, last = statements[0], statements[-1]
    for part in (part for statement in statements for part in walk(statement)):
        if isinstance(part, (ast.Constant, ast.JoinedStr)) and part.lineno != part.end_lineno:
            raise NotProven("the loop contains a multi-line string")
    start, end = site.span(first), site.span(last)
    unit = site.source.indent
    written = site.source.segment(start.through(end))
    margin = site.source.text[: site.source.offset(first.lineno, first.col_offset)].rpartition("\n")[2]
    lines = []
    for number, line in enumerate(re.split(r"\r\n|\r|\n", written)):
        text = line if number == 0 else line.removeprefix(margin) if line.startswith(margin) else line.lstrip()
        bare = text.lstrip(" \t")
        levels = len(text[: len(text) - len(bare)]) // len(unit)
        rest = text[len(unit) * levels :]
        lines.append(f"    {'    ' * levels}{rest}" if bare else "")
    text = "\n".join(lines)
    _check_same(statements, text)
    return text


KNOWS_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec"})
"""Functions that may read any local of the function that calls them."""
OF_A_CLASS = frozenset({"super", "__class__"})
"""Words that mean something in a method alone."""


def demand_movable(
    nodes: Iterable[ast.AST], leaves: tuple[type[ast.AST], ...], forms: tuple[type[ast.AST], ...], words: frozenset[str]
) -> None:
    """NotProven for what leaves a loop, cannot stand in a function of its own, or means something else there."""
    for part in nodes:
        if isinstance(part, leaves):
            raise NotProven(f"`{short(part)}` leaves the loop")
        if isinstance(part, forms):
            raise NotProven(f"`{short(part)}` in the loop cannot be moved into a function")
        word = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
        if (word.startswith("__") and not word.endswith("__")) or word in words:
            raise NotProven(f"`{word}` has another meaning outside the class")


def jumps_out(statements: Iterable[ast.stmt]) -> set[int]:
    """The identities of each `break` and `continue` that leads out of these statements."""
    jumps: set[int] = set()
    inside: set[int] = set()
    for part in (part for each in statements for part in walk(each)):
        if isinstance(part, (ast.Break, ast.Continue)):
            jumps.add(id(part))
        elif isinstance(part, (ast.For, ast.AsyncFor, ast.While)):
            inside |= {id(inner) for inner in walk(part)}
    return jumps - inside


def demand_own_names(site: Site, bound: Iterable[str], used: AbstractSet[str]) -> None:
    """NotProven where names that moved statements bind are not the function's own, or nested ones use the others."""
    scope = site.evaluator.scope
    for name in sorted(bound):
        if not scope.is_local(name) or name in scope.closure - scope.locals:
            raise NotProven(f"`{name}` is not local to this function")
    for part in walk_scope(scope.node):
        if isinstance(part, SCOPES) and (known := all_names(part) & used):
            raise NotProven(f"a nested function uses `{min(known)}`")
        if isinstance(part, ast.Name) and part.id in KNOWS_NAMES and not scope.is_local(part.id):
            raise NotProven(f"`{part.id}` in the function may read local variables of the loop")


def is_bound_before(site: Site, name: str, kinds: tuple[type[ast.stmt], ...]) -> bool:
    """True for a parameter, and for what a statement of these kinds has bound before; not where it may be deleted."""
    function = site.evaluator.scope.node
    if name in _deleted_in(function):
        return False
    if any(each.arg == name for each in parameters(function)) or site.is_bound(name):
        return True
    return any(isinstance(each, kinds) and rebinds(each, name) for each in site.place.above())


@lru_cache(maxsize=64)
def _deleted_in(function: ast.AST) -> frozenset[str]:
    """The names that a function deletes anywhere. Cached: callers look up one name after another."""
    deletions = (part for part in walk_scope(function) if isinstance(part, ast.Delete))
    return frozenset(name for each in deletions for name in stored_names(walk(each)))


def _check_same(statements: Sequence[ast.stmt], text: str) -> None:
    """The moved text must parse to the statements."""
    try:
        parsed = ast.parse("def f():\n" + text).body
    except SyntaxError:
        parsed = []
    for each in parsed:
        with_plain_assignments(each)
    own = [ast.dump(each) for each in parsed[0].body] if parsed and isinstance(parsed[0], ast.FunctionDef) else []
    if len(parsed) != 1 or own != [ast.dump(each) for each in statements]:
        raise NotProven("the source of the loop cannot be moved unchanged")


# The helpers that outlined code of all kinds shares in a file, and names beside theirs

_TAKEN = frozenset(
    {"_one_operator", "_function_operator", "_value_operator", "_number_as_operator", "_nonzero_as_operator"}
)
"""Names of helpers that end like an operator's."""


def operator_name(site: Site, what: str) -> str:
    """A free name for the operator of `what`, a function or a layer, which may be called `one`."""
    name = f"_{what.strip('_')}_operator"
    return site.free_name(f"_{what.strip('_')}_as_operator" if name in _TAKEN else name)


def functions(site: Site, *, gradient: bool) -> tuple[Helper, ...]:
    """For functions of tensors that draw no random numbers; the decorator is the last."""
    features = ("gradient",) if gradient else ()
    name = "_function_operator" if gradient else "_value_operator"
    text = of_functions.operator(*features).replace("_function_operator", name)
    return (
        NAMING,
        Helper("_is_transformed", of_functions.TRANSFORMED, shared=True),
        Helper(
            "_fits_a_function",
            of_functions.FITS,
            after=("_is_transformed",),
            shared=True,
            since="compiler.is_exporting",
        ),
        Helper(name, text, after=("_operator_name", "_fits_a_function"), shared=True),
    )
