"""CTC losses: torch has no shape for what computes them, but the loss of a batch, or of a sequence, is one element."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import is_attribute, written_text
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site

_REDUCTION = 5
"""Where it stands among the arguments of `torch.nn.functional.ctc_loss`."""
_OF_LAYER = 1
"""Where it stands among the arguments of `torch.nn.CTCLoss`."""
_LENGTHS = {2: "input_lengths", 3: "target_lengths"}


def ctc_loss(site: Site, call: ast.Call) -> ast.expr | None:
    """A tensor of the shape and dtype of a CTC loss, without data; None for any other call."""
    held = holds_ctc_loss(site, call.func)
    called = torch_api.torch_function(site.resolve_global(call.func))
    if not (held or called == "ctc_loss") or not call.args:
        return None
    reduction = reduction_of(site, call.func) if held else _constant(call, _REDUCTION)  # type: ignore[arg-type]
    total = ast.Call(ast.Attribute(call.args[0], "sum", ast.Load()), [], [])
    if reduction != "none":
        return total if held or reduction in {"mean", "sum"} else None
    # (steps, sequences, classes) or (steps, classes)
    total.args = [ast.Constant(0)]
    return ast.Subscript(total, ast.Tuple([ast.Constant(...), ast.Constant(0)], ast.Load()), ast.Load())


def holds_ctc_loss(site: Site, node: ast.expr) -> bool:
    """True for `self.ctc`, to which the class assigns an `nn.CTCLoss`: a hint, which a header asks for."""
    if not isinstance(node, ast.Attribute) or not is_attribute(node, site.evaluator.scope.self_name):
        return False
    fact = site.evaluator.scope.attribute(node.attr)
    return fact is not None and torch_api.torch_module_class(fact.callee) == "CTCLoss"


def reduction_of(site: Site, layer: ast.Attribute) -> str:
    """What the class makes `self.ctc` with, which a header asks for; empty where that is no constant."""
    home = site.class_name
    made = [each for each in calls_in(site.source.text).assigned(home, layer.attr) if isinstance(each, ast.Call)]
    found = {_constant(each, _OF_LAYER) for each in made}
    return found.pop() if len(found) == 1 else ""


def _constant(call: ast.Call, position: int) -> str:
    words = {word.arg: word.value for word in call.keywords}
    given = call.args[position] if len(call.args) > position else words.get("reduction", ast.Constant("mean"))
    return written_text(given) or ""


def lengths_asked(site: Site, statements: Iterable[ast.stmt], given: Iterable[str]) -> Iterator[str]:
    """What a header asks of lengths: they have to be tensors, since no gradient goes by lists of numbers.

    `given` are the names that the statements read from before them. NotProven where a length may be something else.
    """
    for statement in statements:
        for call in walk(statement):
            if isinstance(call, ast.Call) and ctc_loss(site, call) is not None:
                words = {word.arg: word.value for word in call.keywords}
                for position, name in _LENGTHS.items():
                    lengths = call.args[position] if len(call.args) > position else words.get(name)
                    yield from _tensors(site.reached(statement), lengths, given)


def _tensors(site: Site, lengths: ast.expr | None, given: Iterable[str]) -> Iterator[str]:
    if isinstance(lengths, ast.Name) and lengths.id in given:
        yield f"type({lengths.id}) is {site.torch}.Tensor"  # `isinstance` would leave a path that returns open
    elif lengths is None or not site.value(lengths).is_tensor:
        told = "the lengths" if lengths is None else f"`{short(lengths)}`"
        raise NotProven(f"cannot infer that {told} is a Tensor; pass a Tensor, or annotate it: `torch.Tensor`")
