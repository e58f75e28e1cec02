"""CTC losses: torch has no shape for what computes them, but the loss of a batch is one element."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import is_attribute
from graphmend_codemod.rules.framework.site import Site

_REDUCTION = 5
"""Where it stands among the arguments of `torch.nn.functional.ctc_loss`."""


def loss_of_batch(site: Site, call: ast.Call) -> ast.expr | None:
    """A tensor of the shape and dtype of the loss of a batch, without data; None for any other call."""
    held = holds_ctc_loss(site, call.func)
    called = torch_api.torch_function(site.resolve_global(call.func))
    if not (held or called == "ctc_loss") or not call.args:
        return None
    words = {word.arg: word.value for word in call.keywords}
    given = call.args[_REDUCTION] if len(call.args) > _REDUCTION else words.get("reduction", ast.Constant("mean"))
    if not held and (not isinstance(given, ast.Constant) or given.value not in {"mean", "sum"}):
        return None
    return ast.Call(ast.Attribute(call.args[0], "sum", ast.Load()), [], [])


def holds_ctc_loss(site: Site, node: ast.expr) -> bool:
    """True for `self.ctc`, to which the class assigns an `nn.CTCLoss`: a hint, which a header asks for."""
    if not isinstance(node, ast.Attribute) or not is_attribute(node, site.evaluator.scope.self_name):
        return False
    fact = site.evaluator.scope.attribute(node.attr)
    return fact is not None and torch_api.torch_module_class(fact.callee) == "CTCLoss"
