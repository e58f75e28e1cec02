"""tensor-as-integer (GM402): Python integers are put into a tensor and read back out as sizes, bounds and numbers.

`sizes = torch.tensor([len(x) for x in xs])` and then `sizes.max().item()`, `y[:, : sizes[0]]`, `y.view(sizes.tolist())`
or `for size in sizes:` break the graph, and wait for the device, for numbers that were Python integers all along. Under
`torch.compile` a copy of the numbers is kept beside the tensor, which stays what it is for everything else, and is
read in its place. Eager mode reads the tensor, as before.

What a tensor holds is followed through names, elements, arithmetic, `cat` and `stack`, and short methods of the class.
An attribute that the constructor makes a tensor of, `self.register_buffer("width", torch.tensor(width),
persistent=False)` or `self.width = nn.Buffer(...)`, holds an integer that the module still has as an attribute or as
the stride of a convolution.
Positions that `torch.arange` counts end where it was told: `positions[-1] + 1` is that number, also in a function that
gets them. Where all that is asked of them is whether they are None and what one of them is, `if positions[0] > 0:`, a
Python `range` takes their place, down to the last function that gets them. A function that gets a tensor together
with the list it was built from takes the list. A function of the project that uses its argument for sizes alone gets
the number or the list; one under `torch.jit.script` does so while Dynamo traces its Python text. One of another file
has to compute with functions of torch alone.

An integer that only goes through a floating tensor of one element comes back as a number of its own: how losses count
their boxes, `n = torch.as_tensor([n], dtype=torch.float)`, then `n = torch.clamp(n / get_world_size(), min=1).item()`.
What adds the tensor up over processes, and what divides it by their number, is left out where `torch.distributed` is
not initialized, for which the header asks; it asks as well that the integer is no larger than 2**24.

It is done where nothing may write into the tensor before it is read, and each call runs one known function. Whether the
numbers are integers is asked while tracing where the source does not tell; a size that is a 0-dim tensor itself stays
one, as torch takes it. Where integer tensors are divided, eager mode rounds the quotient to torch's default dtype: the
compile path asks that this rounds as the exact quotient does. A state dict must not load the tensor of an attribute,
and subclasses run the original. What changes such a tensor without naming it is not seen: a loop over `buffers()` that
writes in place, or code outside of the project that sets `conv.stride`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from functools import lru_cache

from graphmend_codemod.analysis.patterns import elements_of, is_attribute, is_name, last_name
from graphmend_codemod.analysis.scope import of_kind, walk_in_layers
from graphmend_codemod.project.summary.spelling import ELEMENT_TESTED
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.integers.number_loops import is_end

rule = Rule(
    __name__,
    __doc__,
    title="take numbers from what a tensor was built from",
    contract=Contract(
        cost=Cost.NONE,
        cost_note="sizes are constants: another list of sizes may recompile",
        compiled_exceptions="kept, but for the end of an empty range, which has the size 0",
        compiled_state=ASKS_CLASSES,
    ),
)

_STATEMENTS = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)
_MAKERS = frozenset({"IntTensor", "LongTensor", "array", "as_tensor", "asarray", "tensor"})
_END = re.compile(r"\[\s*-\s*1\s*\]\s*\+")
_TENSOR = re.compile(r"\.\s*(?:as_)?tensor\(")


@rule.on(*_STATEMENTS, ast.For, words=_MAKERS)
def read(site: Site, node: ast.stmt) -> Diagnostic | None:
    """`n = lengths.max().item()` where `lengths = torch.tensor([len(x) for x in xs])`."""
    if not _may_read(site, node):
        return None
    from graphmend_codemod.rules.proofs.numbers.integers.number_edits import read_numbers  # a commit hook waits for it

    found = read_numbers(site, node)
    if found is not None or isinstance(node, ast.For):
        return found
    from graphmend_codemod.rules.proofs.numbers.integers.float_reads import read_as_float

    return read_as_float(site, node)


@rule.on(*_STATEMENTS, ast.For, candidate="list")
def read_elsewhere(site: Site, node: ast.stmt) -> Diagnostic | None:
    """`F.pad(x, (self.width, 0))` where the constructor keeps `width` in a tensor.

    And `for height, width in shapes:` in a function that is given `shapes` and the list that it was built from.
    """
    return read(site, node) if site.evaluator.scope.outline.words.keys().isdisjoint(_MAKERS) else None


@rule.on(*_STATEMENTS, words=("arange", "full", "zeros", "ones", "empty"), here=True)
def read_of_ends(site: Site, node: ast.stmt) -> Diagnostic | None:
    """`torch.arange(positions[-1] + 1)` where `positions = torch.arange(n)`."""
    return read(site, node) if _reads_end(site.source.text) else None


@rule.on(ast.Assign, words=("arange",), here=True)
def counted(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`positions = torch.arange(0, self.width)`, where `if positions[0] > 0:` asks for one of them."""
    if not _asks(site.source.text):
        return None
    from graphmend_codemod.rules.proofs.numbers.integers.counted_ranges import range_for  # a commit hook waits for it

    return range_for(site, node)


@lru_cache(maxsize=4)
def _reads_end(text: str) -> bool:
    return _END.search(text) is not None


@lru_cache(maxsize=4)
def _asks(text: str) -> bool:
    return ELEMENT_TESTED.search(text) is not None


def _may_read(site: Site, node: ast.stmt) -> bool:
    """A quick look at the names of a statement, which costs less than to parse the file."""
    outline = site.evaluator.scope.outline
    owner = site.function.rpartition(".")[0]
    keeps = _keeps_tensors(site, f"{owner}.__init__") if owner else False
    listed = site.flow.lists.keys() if site.flow.lists else set()

    def tells(part: ast.AST, known: Collection[str]) -> bool:
        if isinstance(part, ast.Name):
            return part.id in known or part.id in listed
        if isinstance(part, ast.Call):
            kept = is_name(part.func, "int") and isinstance(part.args[0] if part.args else None, ast.Attribute)
            return kept or last_name(part.func) in _MAKERS
        return (keeps and is_attribute(part, "self")) or is_end(part)

    def names() -> set[str]:
        found: set[str] = set()
        for _ in range(3):
            before = len(found)
            for each in outline.assignments:
                bound = {part.id for target in each.targets for part in of_kind(elements_of(target), ast.Name)}
                if not bound <= found and any(tells(part, found) for part in walk_in_layers(each.value)):
                    found |= bound
            if len(found) == before:
                break
        return found

    known = site.remembered("numbers in tensors", site.evaluator.scope.node, names, anywhere=True)
    return any(tells(part, known) for part in walk_in_layers(node.iter if isinstance(node, ast.For) else node))


def _keeps_tensors(site: Site, constructor: str) -> bool:
    """True where the text of a constructor has `torch.tensor(`."""
    text, starts = site.source.text, [*site.source.line_starts, len(site.source.text)]
    return any(
        _TENSOR.search(text, starts[each.line - 1], starts[min(each.end_line, len(starts) - 1)]) is not None
        for each in site.summary.functions
        if each.qualname == constructor
    )
