"""What functions outside of a file do: those that are known to change only what they are given.

And what a gradient cannot run again.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from graphmend_codemod.analysis import aliasing, speculation, torch_api
from graphmend_codemod.analysis.patterns import root_of
from graphmend_codemod.analysis.scope import FunctionNode, walk
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site

_BUILTINS = torch_api.name_set(
    """abs all any bool enumerate float int isinstance issubclass len list max min range reversed round slice sum tuple
    zip set dict sorted str type divmod hasattr getattr"""
)
# Methods, by what they do with the memory of what they are called of

COPIES = torch_api.name_set("item tolist size dim numel stride element_size format items keys values get is_complex")
SHARES = torch_api.name_set(
    "to cpu cuda float double half bfloat16 int long short bool type type_as contiguous detach numpy"
)
FILLS = torch_api.name_set("append extend insert")
RESHAPES = torch_api.name_set(
    "resize_ resize_as_ set_ t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_ rename_"
)

CONTEXTS = frozenset({"torch.no_grad", "torch.enable_grad", "torch.inference_mode", "torch.backends.cudnn.flags"})
_MODULES = ("torch.compiler.is_", "torch.jit.is_", "math.", "operator.", "itertools.")
_OF_TORCH = frozenset(f"torch.{name}" for name in "device finfo iinfo Size is_tensor _assert_async".split())
_PROCESSES = frozenset(f"torch.distributed.{name}" for name in ("is_available", "is_initialized"))
_ARRAYS = ("numpy.", "einops.")
_NOT_AGAIN = frozenset({"numpy", "__array__", "data_ptr"})
_MODES = torch_api.name_set(
    "set_grad_enabled set_default_dtype set_default_device use_deterministic_algorithms compile"
)

_ASKS_MODES = frozenset({"is_grad_enabled", "is_inference_mode_enabled"})
OF_ONE_VALUE = torch_api.PYTHON_ATTRIBUTES.keys() | torch_api.name_set(
    "data grad T mT real imag type index is_floating_point is_complex itemsize"
)
"""Attributes of tensors and of constants."""
GRADIENT_STATE = torch_api.name_set("requires_grad requires_grad_ is_leaf grad_fn retains_grad is_inference")


def of_function(qualified: str, call: ast.Call) -> aliasing.Effect | None:
    """What a call of the function with this full name changes, and what its result shares; None where there is none."""
    name = torch_api.torch_function(qualified)
    if name in _ASKS_MODES:
        raise NotProven(f"`torch.{name}()` is not the same inside of a custom operator")
    if name in _MODES:
        return aliasing.Effect(known=False)
    if qualified in CONTEXTS or qualified in _OF_TORCH:
        return aliasing.Effect()
    if name is not None and ("." not in name or name in aliasing.FRESH):
        effect = aliasing.of_operator(name, call)
        fine = effect.known or name in torch_api.RETURNS_TENSOR or name in {"is_tensor", "is_floating_point"}
        fine = fine or name == "Tensor" or f"torch.{name}" in torch_api.TENSOR_TYPES
        return effect if effect.known else aliasing.Effect(shares=tuple(call.args), known=fine)
    if qualified in torch_api.VARIABLE:
        return aliasing.Effect(shares=tuple(call.args))
    builtin = qualified.removeprefix("builtins.") if qualified.startswith("builtins.") else ""
    if builtin in _BUILTINS or (qualified.startswith(_ARRAYS) and not qualified.startswith("numpy.random.")):
        return aliasing.Effect(shares=tuple(call.args))
    known = builtin.endswith("Error") or qualified.startswith(_MODULES)
    return aliasing.Effect(known=known or builtin.endswith("Exception") or qualified in _PROCESSES)


def demand_no_identity(node: ast.AST, local: Collection[str]) -> None:
    """NotProven for `x is y` of two values that a function was given or has made: a gradient runs it with others."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        sides = (node.left, *node.comparators)
        plain = any(isinstance(each, ast.Attribute) and each.attr in OF_ONE_VALUE for each in sides)
        if not plain and all(root_of(each) in local for each in sides):
            raise NotProven(f"`{speculation.short(node)}` is not the same inside of a custom operator")


def demand_one_value(site: Site, name: str) -> None:
    """NotProven for a global that a function of the file binds again.

    Dynamo puts that off until the graph has run, and a gradient runs the code with a later value.
    """
    bound = [each for each in site.summary.bindings if each.name == name and each.value is not None]
    if any(each.value is not None and each.value.kind == "changed" for each in bound):
        raise NotProven(f"a function of this file changes `{name}`, and an operator may see another value of it")


def check_gradient(site: Site, function: FunctionNode) -> None:
    """NotProven for what an operator does not hand out, or what a gradient cannot run again."""
    for part in walk(function):
        off = isinstance(part, ast.keyword) and isinstance(part.value, ast.Constant) and part.value.value is False
        if isinstance(part, ast.keyword) and part.arg == "requires_grad" and not off:
            raise NotProven("it makes a tensor that requires gradients, which an operator does not hand out")
        if isinstance(part, ast.Attribute) and part.attr in _NOT_AGAIN and not site.no_grad:
            raise NotProven(f"a gradient cannot run `.{part.attr}()` again; write `.tolist()`")
