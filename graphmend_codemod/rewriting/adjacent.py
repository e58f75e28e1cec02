"""Edits of statements that follow each other under one header: one compile path for all of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from graphmend_codemod.analysis.aliasing import may_write
from graphmend_codemod.analysis.torch_api import RETURNS_TENSOR
from graphmend_codemod.core.findings import CompilePath, Edit, EditForm, Original, Replacement, Span
from graphmend_codemod.rewriting.blocks import CodeBlocks
from graphmend_codemod.rewriting.render import offsets
from graphmend_codemod.rewriting.text import RewriteError

_BODY, _ELSE = ":\n    ", "\nelse:\n    "
_COMMENTS = re.compile(r"(?:#[^\n]*\n    )+")


def joined(blocks: CodeBlocks, edits: Sequence[Edit], indices: Sequence[int]) -> tuple[dict[int, Edit], dict[int, int]]:
    """The edits with these indices, in this order, where those that one header can hold are one under the first index;
    and for each index the one under which its edit is found.

    A statement joins the ones before it if it follows on the next line, its header asks the same, be it of another name
    (then one header asks for all), and what that asks cannot have changed: it asks only whether code is compiled, or
    for names that the statements before do not bind, if these call nothing but operators of torch.
    """
    found: dict[int, Edit] = {}
    leaders: dict[int, int] = {}
    last: int | None = None
    for index in indices:
        both = _both(blocks, found[last], edits[index]) if last is not None else None
        if both is not None and last is not None:
            found[last] = both
        else:
            found[index], last = edits[index], index
        leaders[index] = last
    return found, leaders


def _both(blocks: CodeBlocks, first: Edit, second: Edit) -> Edit | None:
    """One edit for two, None where they cannot be joined."""
    plain = Edit((), form=EditForm.BESIDE)
    alike = all(
        each._replace(replacements=(), imports=(), helpers=(), scriptable=False, repeats=False, raises=True) == plain
        for each in (first, second)
    )
    named = {each.name: each for each in first.helpers}
    if any(named.get(each.name, each) != each for each in second.helpers):
        return None  # two definitions of one name: they get numbers, each in its own edit
    if not alike or len(first.replacements) != 1 or len(second.replacements) != 1:
        return None
    (one,), (other,) = first.replacements, second.replacements
    paths = _path(one), _path(other)
    if paths[0] is None or paths[1] is None:
        return None
    (asked, before), (also_asked, behind) = paths[0], paths[1]
    header = _header_of_both(blocks, one.span, asked, also_asked)
    statements = _before(blocks, one.span, other.span)
    if header is None or not statements or not all(_stays(blocks.tree, header, each) for each in statements):
        return None
    both = one.span.through(other.span)
    said = _COMMENTS.match(str(before[0]))
    if said is not None and isinstance(behind[0], str):  # said once
        behind = (behind[0].removeprefix(said[0]), *behind[1:])
    parts = (header + _BODY, *before, "\n    ", *behind, _ELSE, Original(both, 1))
    imports = tuple(dict.fromkeys((*first.imports, *second.imports)))
    helpers = tuple(dict.fromkeys((*first.helpers, *second.helpers)))
    return first._replace(replacements=(Replacement(both, parts),), imports=imports, helpers=helpers)


def _path(one: Replacement) -> tuple[CompilePath, tuple[str | Original, ...]] | None:
    """The header and the compile path of `if header: path else: statement`; None for any other replacement."""
    first, *rest = one.parts
    if not isinstance(first, CompilePath) or first.negated or not first.startswith("if ") or _BODY not in first:
        return None
    if one.parts[-1] != Original(one.span, 1) or not rest:
        return None
    *path, behind = [first.partition(_BODY)[2], *rest[:-1]]
    if not isinstance(behind, str) or not behind.endswith(_ELSE):
        return None
    header = CompilePath(str(first).partition(_BODY)[0], first.conditions)
    return header, tuple(part for part in (*path, behind.removesuffix(_ELSE)) if part)


def _header_of_both(blocks: CodeBlocks, place: Span, one: CompilePath, other: CompilePath) -> CompilePath | None:
    """A header that asks what both ask, None unless they ask the same of other names in less than what they share.

    Where the header of one does not hold, the graph breaks at the other as well. So neither may ask what the other does
    not, nor for gradients alone: that is what training and evaluation differ in.
    """
    if one == other:
        return one
    asked, also_asked = _operands(one), _operands(other)
    more = [each for each in also_asked if each not in asked]
    less = [each for each in asked if each not in also_asked]
    shared = len(asked) - len(less)
    if shared < 2 or max(len(more), len(less)) > shared or any("grad" in each for each in (*more, *less)):
        return None
    if set(map(_kind, more)) != set(map(_kind, less)):
        return None
    conditions = tuple(dict.fromkeys((*one.conditions, *other.conditions)))
    line = f"if {' and '.join((*asked, *more))}"
    source = blocks.layout.source
    column = len(source.line(place.start_line)) - len(source.line(place.start_line).lstrip())
    if source.is_too_long(column + len(line) + len(":")):
        between = "\n    and "
        line = f"if (\n    {between.join((*asked, *more))}\n)"
    return CompilePath(line, conditions)


def _kind(condition: str) -> str:
    """What a condition asks, of whatever it asks it: the class, the dtype, whether it fits a helper."""
    node = ast.parse(f"({condition})", mode="eval").body
    asked = node.left if isinstance(node, ast.Compare) else node
    asked = asked.func if isinstance(asked, ast.Call) else asked
    return asked.attr if isinstance(asked, ast.Attribute) else getattr(asked, "id", type(asked).__name__)


def _operands(header: CompilePath) -> list[str]:
    """What a header joins by `and`, as it is spelled and broken into lines; empty where it is another form."""
    text = header.removeprefix("if ")
    broken = text.startswith("(\n    ") and text.endswith("\n)")
    found = text[6:-2].split("\n    and ") if broken else list(header.conditions)
    return found if _parsed(found) == _parsed(header.conditions) and (broken or text == " and ".join(found)) else []


def _parsed(conditions: Sequence[str]) -> str:
    """The syntax tree of conditions joined by `and`."""
    return ast.dump(ast.parse("(" + " and ".join(conditions) + ")", mode="eval"))


def _before(blocks: CodeBlocks, one: Span, other: Span) -> list[ast.stmt]:
    """The statements of the first of two parts of one block, each part on lines of its own, the second on the next."""
    places = [offsets(blocks.layout, span) for span in (one, other)]
    try:
        first, second = (blocks.find(*place) for place in places)
    except RewriteError:
        return []
    layout, ((_, end), (start, _)) = blocks.layout, places
    alone = all(each.whole and blocks.line_mates(each) == (each.first, each.last) for each in (first, second))
    same = first.block is second.block
    near = not layout.source.text[end:start].strip() and layout.source.line_at(start) == layout.source.line_at(end) + 1
    return first.block[first.first : first.last + 1] if alone and same and near else []


def _stays(tree: ast.Module, header: CompilePath, statement: ast.stmt) -> bool:
    """True where a header says the same behind a statement of a module."""
    if len(header.conditions) == 1 and header.conditions[0].endswith("_compiling()"):
        return True
    nodes = list(ast.walk(statement))
    asked = [part for each in header.conditions for part in ast.walk(ast.parse(each.strip(), mode="eval"))]
    names = {part.id for part in asked if isinstance(part, ast.Name)}
    stored = {part.id for part in nodes if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    calls = any(isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom)) for part in nodes) or not all(
        _only_computes(part) for part in nodes if isinstance(part, ast.Call)
    )
    writes = any(isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load) for part in nodes)
    # Writing rows that need a gradient into a tensor makes it need one.
    into = any(isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load) for part in nodes)
    gradients = any(isinstance(part, ast.Attribute) and part.attr == "requires_grad" for part in asked)
    # `self.norm(x)` has the name of an operator, and may be a method that sets what the header asks of `self`.
    called = (part.func.value for part in nodes if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
    owners = {part.id for part in called if isinstance(part, ast.Name)} - _modules(tree)
    methods = not owners.isdisjoint(names) or (gradients and bool(owners))
    return names.isdisjoint(stored) and not calls and not writes and not methods and not (into and gradients)


def _modules(tree: ast.Module) -> set[str]:
    """The names that the imports of a module bind."""
    imports = (each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom)))
    return {(each.asname or each.name).partition(".")[0] for one in imports for each in one.names}


def _only_computes(call: ast.Call) -> bool:
    """True for a call by the name of an operator that makes a tensor and writes into none, or of such a builtin."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    method = isinstance(call.func, ast.Attribute)
    return name in _NUMBERS or (name in RETURNS_TENSOR and not may_write(name, call, method=method))


_NUMBERS = ("int", "float", "bool", "len")
