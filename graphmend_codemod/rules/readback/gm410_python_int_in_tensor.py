"""python-int-in-tensor (GM410): Python integers are put into a tensor and used only as slice bounds.

`n = torch.IntTensor([self.wide])` and then `x[:, : n[0]]`, here or in a function that gets the number or the
tensor, breaks the graph to read back what was known. Code for TorchScript hands over numbers in this way, as in the
gated activation of WaveNets. Under `torch.compile` the number stands in the place of the tensor's element, or a list in
that of the tensor: the slice is the same. Eager mode reads the tensor, as before.

A tensor of sizes, `t = torch.LongTensor([x.shape[0], n])`, is a list from the start in the compile path, if no function
of TorchScript gets it. Integer arithmetic with the numbers, tests and sizes are as good as bounds of slices.

An array of NumPy, `bounds = np.array(self.ranges[name])`, is a tensor for Dynamo as well. Where its elements bound
slices and do nothing else, the compile path has a tuple of the same numbers, if they are integers in a tuple or list.

It is done where every use is known: numbers and tensor are handed to functions of this module alone, without decorators
but for `torch.jit.script`, whose Python text Dynamo traces, and bound nothing but slices there. The compile path is for
Dynamo alone: other tracers call a scripted function as it is.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_size, stores_name
from graphmend_codemod.analysis.scope import FunctionNode, dotted, walk
from graphmend_codemod.analysis.torch_api import TENSOR_MAKERS
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import judged, paths_with, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site

if TYPE_CHECKING:
    from graphmend_codemod.rules.proofs.numbers.number_uses import NumberUses


rule = Rule(
    __name__,
    __doc__,
    title="keep the bounds of slices in a list",
    contract=Contract(cost=Cost.NONE, compiled_state=ASKS_CLASSES),
)


_TYPED = frozenset({"torch.IntTensor", "torch.LongTensor"})
_INTEGERS = frozenset({"torch.int", "torch.int32", "torch.int64", "torch.long"})
_COMMENT = "# The number itself: it would have to be read out of the tensor."
_LIST = "# Numbers that bound slices: they would have to be read out of a tensor."
_COUNTS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)


@rule.on(ast.Assign, words=("IntTensor", "LongTensor", "tensor", "as_tensor"), here=True)
def made_of_numbers(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`n = torch.IntTensor([self.wide])`, of which `n[0]` bounds a slice."""
    target, elements = node.targets[0], _listed(site, node.value)
    if len(node.targets) != 1 or not isinstance(target, ast.Name) or not elements:
        return None
    from graphmend_codemod.rules.proofs.calls.unique_callee import sure_calls  # a commit hook waits for them
    from graphmend_codemod.rules.proofs.numbers.number_uses import NumberUses

    sure = sure_calls(site)
    function = sure.calls.at(site.evaluator.scope.node.lineno)
    if function is None:
        return None
    uses = NumberUses(sure, site.resolve_global).several(function, target.id, len(elements))
    if not uses.slices:
        return None
    message = f"stores slice bounds in a tensor (device sync): `{speculation.short(node.value)}`"
    try:
        return Diagnostic(message, edit=_edit(site, uses, elements))
    except NotProven as reason:
        swapped = NumberUses(sure_calls(site), site.resolve_global, swapped=True).several(
            function, target.id, len(elements)
        )
        try:
            return Diagnostic(message, edit=_swapped(site, node, swapped, target.id, elements))
        except NotProven:
            return Diagnostic(message, declined=str(reason))


def _listed(site: Site, node: ast.expr) -> list[ast.expr]:
    """`[a, b]` for `torch.IntTensor([a, b])` and `torch.tensor([a, b], dtype=torch.long)`."""
    given = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 else None
    if not isinstance(node, ast.Call) or not isinstance(given, (ast.List, ast.Tuple)):
        return []
    name, words = site.resolve(node.func), {word.arg: word.value for word in node.keywords}
    whole = "dtype" not in words or site.resolve(words["dtype"]) in _INTEGERS
    made = name in _TYPED if not words else False
    made |= name in TENSOR_MAKERS and words.keys() <= {"device", "dtype"} and whole
    return given.elts if made and not any(isinstance(each, ast.Starred) for each in given.elts) else []


@rule.on(ast.Assign, words=("array", "asarray"), here=True)
def array_of_numbers(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`n = np.array(self.sizes[key])`, of which `n[0]` bounds a slice."""
    from graphmend_codemod.rules.proofs.numbers.integer_arrays import array_made, tuple_in_front, uses_of_array

    made = array_made(site, node)
    uses = uses_of_array(site, made[0]) if made is not None else None
    if made is None or uses is None:
        return None
    message = f"stores slice bounds in an array, which is a tensor for Dynamo: `{speculation.short(node.value)}`"
    return judged(message, lambda: tuple_in_front(site, node, *made, uses, _COMMENT))


def _asked(site: Site, uses: NumberUses, compiling: str, elements: list[ast.expr], *, here: bool) -> list[str]:
    """The conditions of a compile path that has integers for the elements of the tensor."""
    from graphmend_codemod.rules.proofs.calls.certain_calls import local_names

    if uses.reason is not None:
        raise NotProven(uses.reason)
    function = uses.function
    taken = {"isinstance", "int"} & local_names(function.node)
    if site.torch is None or taken:
        raise NotProven(name_taken(min(taken, default="torch")))
    asked = [name for element in elements for name in _numbers(None if here else function.node, element)]
    return [compiling, *dict.fromkeys(f"isinstance({each}, int)" for each in asked), *uses.conditions(site)]


def _edit(site: Site, uses: NumberUses, elements: list[ast.expr]) -> Edit:
    """The statements that use the tensor, each with a compile path in front that has the numbers."""
    conditions = _asked(site, uses, f"{site.torch}.compiler.is_dynamo_compiling()", elements, here=False)
    texts = [site.text(element) for element in elements]
    tight = [
        f"({text})" if isinstance(element, ast.BinOp) else text for element, text in zip(elements, texts, strict=True)
    ]
    whole = f"[{', '.join(texts)}]"
    written = [
        (use, tight[ast.literal_eval(use.slice)] if isinstance(use, ast.Subscript) else whole) for use in uses.nodes
    ]
    replacements = paths_with(site, uses.function.node, conditions, _COMMENT, written)
    return Edit(tuple(replacements), imports=site.imports)


def _swapped(site: Site, node: ast.Assign, uses: NumberUses, name: str, elements: list[ast.expr]) -> Edit:
    """The statement that makes the tensor, with a list in its place; no function of TorchScript gets one."""
    conditions = _asked(site, uses, site.compiling, elements, here=True)
    made = f"{name} = [{', '.join(site.text(element) for element in elements)}]"
    return two_paths(site, node, conditions, [_LIST, made])


def _numbers(function: FunctionNode | None, node: ast.expr) -> list[str]:
    """The names that have to hold integers for an expression to be one, which nothing in the function changes."""
    if function is None and is_size(node):
        return []
    if isinstance(node, ast.BinOp) and isinstance(node.op, _COUNTS):
        return [*_numbers(function, node.left), *_numbers(function, node.right)]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return []
    path = (dotted(node) or "").split(".")
    if not path[0] or (len(path) > 1 and path[0] != "self"):
        raise NotProven(f"cannot infer that `{speculation.short(node)}` is an integer")
    for part in walk(function) if function is not None else ():
        own = isinstance(part, ast.Attribute) and part.attr in path and not isinstance(part.ctx, ast.Load)
        if own or (stores_name(part, path[0])):
            raise NotProven(f"`{ast.unparse(node)}` may change between the tensor and its use")
    return [ast.unparse(node)]
