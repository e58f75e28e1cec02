"""Attributes that Dynamo does not read, of NumPy's arrays and of tensors, and arrays that an index makes."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.project.summary.candidates import GRIDS
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.frames import Source
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced
from graphmend_codemod.rules.proofs.untraced.value_sources import Guess

HISTORY = "grad_fn"
"""The attribute that says which function computed a tensor."""


def asked_for_history(site: Site, node: ast.Attribute) -> Untraced | None:
    """`x.grad_fn is None`, whatever `x` is."""
    if (
        node.attr != HISTORY
        or not isinstance(node.ctx, ast.Load)
        or is_name(node.value, site.evaluator.scope.self_name)
    ):
        return None
    advice = (
        "Dynamo does not trace it for a tensor that needs gradients and is no leaf; "
        "manually ask for `requires_grad`, or ask in front of the call of the compiled function"
    )
    return Untraced(node, "asks which function computed a tensor", advice)


def is_array(site: Site, node: ast.expr) -> bool:
    """True for an array of NumPy, or what was taken out of one, as far as the function and its callers tell."""
    return Guess(site).holds(node, _is_array)


def asked_of_array(site: Site, node: ast.Attribute) -> Untraced | None:
    """`x.dtype`, where `x` is an array of NumPy."""
    if site.resolve(node) is not None or not is_array(site, node.value):
        return None
    advice = "Dynamo does not trace it; manually name the type (`np.float32`), or compute with tensors of torch"
    return Untraced(node, "asks for an attribute of an array of NumPy", advice)


def made_of_array(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`torch.FloatTensor(np.ones(3))`."""
    kind = (called or "").removeprefix("torch.")
    if called == kind or not kind.endswith("Tensor") or "." in kind or len(node.args) != 1:
        return None
    if not is_array(site, node.args[0]):
        return None
    advice = "Dynamo does not trace it; manually use `torch.from_numpy`, or `torch.as_tensor` with `dtype=`"
    return Untraced(node, "makes a tensor of an array of NumPy with an old constructor", advice)


def grid(site: Site, node: ast.Subscript) -> Untraced | None:
    """`np.mgrid[0:3, 0:3]`."""
    name = site.resolve(node.value) if isinstance(node.value, ast.Attribute) else None
    if name is None or name.rpartition(".")[0] != "numpy" or name.rpartition(".")[2] not in GRIDS:
        return None
    advice = "Dynamo does not trace it; manually use `torch.meshgrid` and `torch.cat`"
    return Untraced(node, "makes an array by an index of NumPy", advice)


def _is_array(guess: Guess, source: Source) -> bool | None:
    node, value = source.node, guess.value(source)
    if value is not None and (value.is_tensor or value.is_python):
        return False
    if isinstance(node, ast.Call):
        called = guess.resolve(source, node.func)
        if called is not None:
            return None if guess.index.function(called) is not None else called.startswith("numpy.")
        return isinstance(node.func, ast.Attribute) and node.func.attr == "numpy" and not node.args
    return None if isinstance(node, (ast.Name, ast.Subscript, ast.BinOp)) else False
