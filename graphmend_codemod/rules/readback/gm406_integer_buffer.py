"""integer-buffer (GM406): integers stored in tensors by a constructor are used as padding sizes.

`self.register_buffer("stride", torch.tensor(stride), persistent=False)` and what is computed from it are tensors.
`torch.nn.functional.pad` reads them back, which breaks the graph. The compile path computes with the Python integers
that the constructor made the tensors of. Eager mode reads the tensors, as before.

It is done where the whole way from the constructor to `pad` lies in one class, every tensor on it was made of a Python
integer that the module still has (an attribute, the stride of a convolution), and nothing in the project changes either
or loads it with a state dict. What initialises weights may write the same number again (`if isinstance(module, Conv):
init.constant_(module.stride, module.conv.stride[0])`), or numbers of other classes. Where integer tensors are divided,
eager mode rounds the quotient to torch's default dtype. The compile path is taken as long as that rounds up and down
like the exact quotient, which Dynamo decides while it traces; for longer inputs the original runs.

What changes such a tensor without naming it is not seen: a loop over `buffers()` or `named_buffers()` that writes in
place, `_buffers`, `setattr`, `_apply`. Compiled code then goes on with the number that the constructor was given. What
code outside of the project does is not seen, either: where it sets the attribute (`conv.stride`), or puts in a
convolution with another stride, compiled code computes with the new number, and eager mode with the tensor of the old.

Under `torch.compile`, private methods on the way return an integer where they returned a tensor; the rule knows their
callers in the file, and the path is not taken in subclasses of other files. A layer that takes the place of the
convolution must have its `stride` as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.scope import walk, walk_in_layers
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.rules.framework.edits import path_beside
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.sizes.integer_sizes import PAD, Methods
from graphmend_codemod.rules.proofs.sizes.integer_tensors import SUFFIX, Integers, own_attribute, strangers
from graphmend_codemod.rules.proofs.sizes.integer_ways import Quotient, Way

rule = Rule(
    __name__,
    __doc__,
    title="compute sizes from the integers that tensors were built from",
    contract=Contract(cost=Cost.NONE),
)

_SAYS = '"""The Python number that `{}` was made of."""'
_EXACT = "_rounds_exactly"
_HELPER = """\
def _rounds_exactly(numerator, denominator):
    \"\"\"Whether a quotient of integers in torch's default dtype is rounded up and down as the exact one is.\"\"\"
    largest = 0.5 / {torch}.finfo({torch}.get_default_dtype()).eps
    return denominator > 0 and abs(numerator) + denominator < largest"""
_TENSOR = re.compile(r"\.\s*(?:as_)?tensor\(")


@rule.on(ast.Assign, ast.Return, ast.Expr, words=("pad",), here=True)
def integer_buffers(site: Site, node: ast.stmt) -> Diagnostic | None:
    """`F.pad(x, (self.width, 0))`, also where a method is given the numbers."""
    if "." not in site.function or not any(_is_pad(site, part) for part in walk(node)):
        return None
    text, (name, _, method) = site.source.text, site.function.partition(".")
    if not _makes_tensors(site, f"{name}.__init__"):
        return None
    tree = tree_of(text)
    owner = next((each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == name), None)
    if owner is None:
        return None
    integers = Integers(owner, tree, site.resolve_global)
    if not integers.kept:
        return None
    way = Methods(owner, integers.kept, site.resolve_global).way()
    places = [(where, statement.lineno, statement.col_offset) for where, statement in way.sinks]
    if (method, node.lineno, node.col_offset) not in places:
        return None
    message = (
        f"pads by integers stored in tensors (device sync): {', '.join(f'`self.{each}`' for each in sorted(way.names))}"
    )
    if places[0][0] != method:
        return Diagnostic(message, declined=f"it is fixed together with the first such place, in `{places[0][0]}`")
    if places[0] != (method, node.lineno, node.col_offset):
        return None
    reason = next(_why_not(tree, owner, integers, way), None) or next(_elsewhere(site, owner, integers, way), None)
    if reason is not None:
        return Diagnostic(message, declined=reason)
    classes = [owner.name, *_heirs_here(site, owner)]
    ones = f"is {owner.name}" if len(classes) == 1 else f"in ({', '.join(classes)})"
    whole = [f"type({each}) is int" for each in _attributes(integers, _needed(integers, way)) if "[" not in each]
    return Diagnostic(message, edit=_edit(site, integers, way, [f"type(self) {ones}", *whole]))


def _attributes(integers: Integers, names: list[str]) -> list[str]:
    """The attributes that the numbers of these tensors are read of, as they are spelled: `self.span`."""
    found: dict[str, None] = {}
    for name in names:
        for part in walk_in_layers(ast.parse(integers.kept[name].number, mode="eval")):
            called = own_attribute(part)
            if isinstance(part, ast.Subscript) or (called is not None and not called.endswith(SUFFIX)):
                found[ast.unparse(part)] = None
    return [each for each in found if not any(other.startswith(f"{each}.") for other in found)]


def _heirs_here(site: Site, owner: ast.ClassDef) -> list[str]:
    """The subclasses in the same file, of which all is known."""
    module = site.summary.name
    heirs = site.evaluator.scope.index.heirs(f"{module}.{owner.name}")
    here = {each.qualname for each in site.summary.classes if "." not in each.qualname}
    return [name for each in heirs if (name := each.removeprefix(f"{module}.")) in here and each != name]


def _elsewhere(site: Site, owner: ast.ClassDef, integers: Integers, way: Way) -> Iterator[str]:
    """Why other files may give one of the tensors, or what its number is read of, another value."""
    index, own = site.evaluator.scope.index, f"{site.summary.name}.{owner.name}"
    facts, needed = index.class_facts(own), _needed(integers, way)
    names = [*needed, *(each.split(".")[1] for each in _attributes(integers, needed))]
    data = [(path, each) for path, each in index.writers("data") if path != site.summary.path]
    for name in dict.fromkeys(names):
        for path, write in index.writers(name):
            if path != site.summary.path and not _is_of_another(site, own, write.of):
                yield f"`{'.'.join(filter(None, (write.receiver, name)))}` is {write.how} in {path}"
        for path, write in data:
            if write.receiver.rpartition(".")[2] == name:
                yield f"`{write.receiver}.data` is {write.how} in {path}"
        for heir in index.heirs(own):
            inherited = index.class_facts(heir)
            if facts is None or inherited is None or inherited.attributes.get(name) != facts.attributes.get(name):
                yield f"`{heir}` sets `self.{name}`"


def _is_of_another(site: Site, own: str, asked: str) -> bool:
    """True for a class of the project that is no base of the owner: the compile path asks for the owner itself."""
    index = site.evaluator.scope.index
    if not asked or index.class_facts(asked) is None:
        return False
    return not {own, *index.heirs(own)} & {asked, *index.heirs(asked)}


def _makes_tensors(site: Site, constructor: str) -> bool:
    """A quick look for `torch.tensor(` in the text of a constructor, which costs less than to parse the file."""
    text, starts = site.source.text, [*site.source.line_starts, len(site.source.text)]
    return any(
        _TENSOR.search(text, starts[each.line - 1], starts[min(each.end_line, len(starts) - 1)]) is not None
        for each in site.summary.functions
        if each.qualname == constructor
    )


def _is_pad(site: Site, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and site.resolve_global(node.func) == PAD


def _needed(integers: Integers, way: Way) -> list[str]:
    """The tensors whose numbers are asked for, in the order of the constructor."""
    found: set[str] = set()
    todo = list(way.names)
    while todo:
        name = todo.pop()
        found.add(name)
        todo += re.findall(rf"self\._(\w+){SUFFIX}\(\)", integers.kept[name].number)
    return [name for name in integers.kept if name in found]


def _why_not(tree: ast.Module, owner: ast.ClassDef, integers: Integers, way: Way) -> Iterator[str]:
    for name in _needed(integers, way):
        if (reason := integers.kept[name].reason) is not None:
            yield reason
    yield from way.reasons
    for group in _groups(way):
        for statement in group:
            divided = way.rounded.get(id(statement))
            if divided is not None and divided not in group:
                yield "a quotient is rounded in a different statement from its division"
    others = strangers(owner, tree)
    for heir in tree.body:
        if not isinstance(heir, ast.ClassDef) or heir is owner or heir in others:
            continue
        for method in heir.body:
            if isinstance(method, ast.FunctionDef) and method.name in way.called | way.handed:
                yield f"`{heir.name}` replaces `{method.name}`"
    foreign = {id(part) for other in others for part in walk(other)}
    for part in walk(tree):
        elsewhere = isinstance(part, ast.Attribute) and part.attr in way.called and id(part) not in way.calls
        if elsewhere and not (own_attribute(part) is not None and id(part) in foreign):
            yield f"`{speculation.short(part)}` is used where a Tensor may be needed"


def _groups(way: Way) -> Iterator[list[ast.stmt]]:
    """Statements that get one compile path: neighbours, beginning with one that divides where there is one."""
    for block in way.blocks:
        group: list[ast.stmt] = []
        for statement in block:
            if group and (id(statement) not in way.written or id(statement) in way.quotients):
                yield group
                group = []
            if id(statement) in way.written:
                group.append(statement)
        if group:
            yield group


def _edit(site: Site, integers: Integers, way: Way, asked: list[str]) -> Edit:
    assert integers.constructor is not None
    numbers = [
        f"\n\ndef _{name}{SUFFIX}(self) -> int:\n    {_SAYS.format(name)}\n    return {integers.kept[name].number}"
        for name in _needed(integers, way)
    ]
    constructor = integers.constructor
    replacements = [Replacement(site.span(constructor), (site.original(constructor), *numbers))]
    written = {key: change for _, changes in way.written.values() for key, change in changes.items()}
    inside = site.but(written=written)
    helpers: list[Helper] = []
    imports = [*site.imports]
    for group in _groups(way):
        quotient = way.quotients.get(id(group[0]))
        if quotient is not None:
            helpers = [Helper(_EXACT, _HELPER.format(torch=site.torch), after=(site.torch or "torch",))]
        replacements.append(_two_paths(inside, group, quotient, asked))
        if any(isinstance(node, ast.Call) for each in group for node, _ in way.written[id(each)][1].values()):
            imports.append("math")  # the only calls that are written anew round a quotient
    return Edit(tuple(replacements), imports=tuple(dict.fromkeys(imports)), helpers=tuple(helpers))


def _two_paths(inside: Site, group: list[ast.stmt], quotient: Quotient | None, asked: list[str]) -> Replacement:
    conditions = [inside.compiling, *asked]
    if quotient is not None:
        given = f"{inside.text(quotient.numerator)}, {inside.text(quotient.denominator)}"
        conditions.append(f"{_EXACT}({given})")
    return path_beside(inside, group, conditions, [_line(inside, statement) for statement in group])


def _line(inside: Site, statement: ast.stmt) -> str:
    """The statement's text one level deeper, its call broken as black does where one line would be too long."""
    text, value = inside.text(statement), getattr(statement, "value", None)
    if not isinstance(value, ast.Call) or not text.endswith(call := inside.text(value)):
        return text
    arguments = [inside.text(each) for each in (*value.args, *value.keywords)]
    here = inside.but(place=inside.place._replace(statement=statement))
    if here.indentation(1) + len(text) <= inside.line_limit:
        return text
    return here.call(f"{text.removesuffix(call)}{inside.text(value.func)}(", arguments, deeper=1)
