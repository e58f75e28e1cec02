"""Results whose shapes a function tells itself, where nothing can be cut out of it: it runs on tensors without data.

That happens while torch.compile traces, with both outcomes of each test of a tensor and some numbers of rows under each
mask. Where results then differ the graph breaks as before, so nothing but the number of results has to be known here.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.analysis.patterns import elements_of
from graphmend_codemod.analysis.scope import FunctionNode, walk
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.result_shapes import ResultShapes
from graphmend_codemod.rules.proofs.outlining.texts.explored import EXPLORED

_NO_DATA = frozenset({"tolist", "numpy", "unique", "unique_consecutive", "bincount", "data_ptr"})
"""What a tensor without data cannot do."""


class Shapes:
    """How the empty results of one function are made: by a part of it, or by running it on tensors without data."""

    def __init__(self, site: Site, function: FunctionNode, body: Sequence[ast.stmt], guessed: bool = False) -> None:
        cut = ResultShapes(site, function)
        self.cut: ResultShapes | None = cut
        self.assumed: set[str] = set()
        try:
            if guessed:
                raise NotProven("nothing in the function is known to break the graph")
            cut.cut(body)
            self.results, self.smooth = cut.results, cut.smooth
        except NotProven:
            if not site.settings.opaque or not _can_explore(function, cut):
                raise
            cut.assumed = self.assumed = set()
            self.cut, self.results, self.smooth = None, _results(function, cut), True

    def conditions(self, name: str) -> list[str]:
        """What the header asks for the shapes that the helper `name` makes."""
        if self.cut is not None:
            return []
        return [*(f"isinstance({each}, torch.Tensor)" for each in sorted(self.assumed)), f"not {name}.unknown"]

    def noted(self, name: str, call: str) -> str:
        """What the operator runs for `call`; `name` is the helper of the shapes."""
        return call if self.cut is not None else f"{name}.noted({call})"

    def helpers(self, name: str, given: Sequence[str], call: str, after: tuple[str, ...]) -> tuple[Helper, ...]:
        """The helper `name` of what is `given`, and what it needs; `call` runs the code, which comes before it."""
        if self.cut is not None:
            return (Helper(name, empty_results(self.cut, name, given), after=after),)
        return (
            Helper("_shapes_of", EXPLORED, shared=True),
            Helper(name, self._explored(name, given, call), after=(*after, "_shapes_of")),
        )

    def _explored(self, name: str, given: Sequence[str], call: str) -> str:
        lines = [f"    return [{call}]"]
        if self.results > 1:
            names = ", ".join(f"result_{number}" for number in range(self.results))
            lines = [f"    {names} = {call}", f"    return [{names}]"]
        note = '    """The results of the code itself, on tensors without data."""'
        return "\n".join(["@_shapes_of", f"def {name}({', '.join(given)}):", note, *lines])


def empty_results(shapes: ResultShapes, name: str, given: Sequence[str]) -> str:
    """The function `name` of what is `given`, which makes tensors like the results, as text."""
    head = f"def {name}({', '.join(given)}):"
    if len(head) > 79:
        head = "\n".join([f"def {name}(", *(f"    {each}," for each in given), "):"])
    statements = [ast.unparse(ast.fix_missing_locations(each)) for each in shapes.statements]
    lines = [f"    {line}" for each in statements for line in each.splitlines()]
    return "\n".join([head, '    """Tensors of the shapes and dtypes of the results, for tracing."""', *lines])


def _can_explore(function: FunctionNode, cut: ResultShapes) -> bool:
    """False where it is plain that data sizes a result, or that tensors without data do not have what is asked for."""
    parts = list(walk(function))
    returned = [
        value for each in parts if isinstance(each, ast.Return) and each.value for value in elements_of(each.value)
    ]
    asks = any(isinstance(part, ast.Attribute) and part.attr in _NO_DATA for part in parts)
    rounds = any(
        isinstance(part, ast.While) for part in parts
    )  # no number of ways is enough; a loop has its own operator
    return not asks and not rounds and not any(map(cut.is_chosen, returned))


def _results(function: FunctionNode, cut: ResultShapes) -> int:
    """How many tensors the function returns. NotProven where it returns now one, now several, or a number."""
    found = 0
    for node in (part for part in walk(function) if isinstance(part, ast.Return)):
        values = elements_of(node.value) if node.value is not None else []
        if found not in {0, len(values)} or not values or (len(values) == 1 and isinstance(node.value, ast.Tuple)):
            raise NotProven("the function returns one or several results")
        found = len(values)
        for value in values:
            cut.check_tensor(value, node)
    if not found:
        raise NotProven("the function returns nothing")
    return found
