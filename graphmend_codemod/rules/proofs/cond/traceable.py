"""Whether a function of a module, and all that it calls, can be traced under `torch.cond` for either value of a flag.

What cannot be captured there is an error, not a graph break. So only known forms are let through: operations of torch
with sizes that do not depend on data, layers of torch, tests of sizes, of None and of Python flags, no effects.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from graphmend_codemod.analysis import aliasing, torch_api
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.scope import SCOPES, children, dotted, parameters, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.project.summary.candidates import is_python_annotation
from graphmend_codemod.rules.proofs.cond.cond_output_shape import why_not_one_result
from graphmend_codemod.rules.proofs.memory.module_memory import is_name
from graphmend_codemod.rules.proofs.rowwise.packed_rows import Packed, handed_roles, roles_of
from graphmend_codemod.rules.proofs.sizes.size_division import is_division

_LIBRARIES = ("torch.", "math.")
_BUILTINS = frozenset("len list tuple range isinstance getattr zip enumerate min max int".split())
_READS = frozenset(
    """item tolist numpy nonzero argwhere unique unique_consecutive masked_select bincount repeat_interleave equal
    allclose is_nonzero cpu cuda""".split()
)
_MORE_METHODS = frozenset("size dim new_zeros new_ones new_full new_empty as_strided stride where copy_ zero_".split())
# Layers without state of their own that a call changes: a running statistic is an error under `torch.cond`.
LAYERS = frozenset(
    """Linear Bilinear Identity LayerNorm GroupNorm RMSNorm Dropout Dropout1d Dropout2d Dropout3d AlphaDropout Embedding
    Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d ReLU ReLU6 GELU SiLU Mish ELU CELU SELU PReLU
    LeakyReLU Sigmoid Tanh Softmax LogSoftmax Softplus Softsign Hardtanh Hardswish Hardsigmoid LogSigmoid Flatten
    AvgPool1d AvgPool2d AvgPool3d MaxPool1d MaxPool2d MaxPool3d""".split()
)
_CHANGES_STATE = frozenset("batch_norm instance_norm embedding_bag".split())
_CHANGING_WORDS = frozenset({"inplace", "out", "max_norm"})
_ALWAYS = 10**9
_NUMBERS = (ast.Constant, ast.Name, ast.Attribute)
_FORBIDDEN = (ast.Global, ast.Nonlocal, ast.Try, ast.While, ast.With, ast.AsyncWith, ast.AsyncFor, ast.ClassDef)
_MORE_FORBIDDEN = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda, ast.FunctionDef, ast.Import)


def why_not_traced(
    calls: ModuleCalls, decider: Definition, flag: str, guards: Collection[str], packed: Packed | None
) -> str | None:
    """The condition that fails for `decider`, which decides by its parameter `flag`; its `guards` are false.

    `packed` is its statement that packs rows, for which there is a form with static sizes.
    """
    args = decider.node.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or decider.node.decorator_list:
        return f"the signature of `{decider.qualname}` is not plain"
    if not decider.owner:
        return f"`{decider.qualname}` is not a method"
    for node in _uses(decider, flag):
        if not _only_tests(decider, node, guards):
            return f"`{decider.qualname}` uses `{flag}` for more than branching"
    inputs = frozenset(each.arg for each in parameters(decider.node))
    reason = _why_not_in(calls, decider, packed, packed.roles if packed is not None else {}, inputs, set())
    returns = [node for node in traced_nodes(decider) if isinstance(node, ast.Return)]
    return reason or why_not_one_result(decider, returns, flag, guards, packed)


def _uses(function: Definition, name: str) -> list[ast.Name]:
    return [
        node
        for node in walk_scope(function.node)
        if isinstance(node, ast.Name) and node.id == name and not _in_dispatch(function, node)
    ]


def _in_dispatch(function: Definition, node: ast.AST) -> bool:
    """True in the statement that hands the flag to `torch.cond`, once there is one."""
    return any(_is_dispatch(each) and any(part is node for part in walk_in_layers(each)) for each in function.node.body)


def _is_dispatch(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and _calls(statement.test, "isinstance") and _calls(statement, "cond")


def _calls(node: ast.AST, name: str) -> bool:
    """True when something with this name is called, also as an attribute."""
    return any(
        isinstance(part, ast.Call) and name in (getattr(part.func, "id", ""), getattr(part.func, "attr", ""))
        for part in walk_in_layers(node)
    )


def _only_tests(function: Definition, use: ast.Name, guards: Collection[str]) -> bool:
    """True for `if flag:`, `if not flag:`, `a if flag and guard else b`."""
    if not isinstance(use.ctx, ast.Load):
        return False
    for node in walk_scope(function.node):
        if isinstance(node, (ast.If, ast.IfExp)) and any(part is use for part in walk_in_layers(node.test)):
            test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
            named = test.values if isinstance(test, ast.BoolOp) else [test]
            return all(isinstance(each, ast.Name) and (each is use or each.id in guards) for each in named)
    return False


def _why_not_in(
    calls: ModuleCalls,
    function: Definition,
    packed: Packed | None,
    roles: Mapping[str, str],
    inputs: frozenset[str],
    seen: set[tuple[str, frozenset[str]]],
) -> str | None:
    """The condition that fails in a function and below; `inputs` are its parameters that are tensors from outside."""
    if (function.qualname, inputs) in seen:
        return None
    seen.add((function.qualname, inputs))
    counted = roles.keys() | _counted_names(function)
    packing = {id(part) for part in walk_in_layers(packed.statement)} if packed is not None else set()
    outside = _aliases(calls, function, inputs)
    for node in traced_nodes(function):
        if id(node) in packing:
            continue
        reason = _why_not_form(calls, function, node, outside)
        if reason is None and isinstance(node, ast.Subscript) and not _is_static_index(node.slice, counted):
            reason = f"`{short(node)}` in `{function.qualname}` may select rows by data"
        if reason is None and isinstance(node, ast.Call):
            callee = calls.callee(function, node)
            if callee is not None and (packed is None or roles_of(calls, callee) is None):
                handed = {
                    name
                    for name, given in callee.arguments(node).items()
                    if any(node.lineno <= outside.get(each, -1) for each in _shared(calls, function, given))
                } | {"self"}
                below = handed_roles(callee, node, roles)
                reason = _why_not_in(calls, callee, packed, below, frozenset(handed), seen)
            elif callee is None and not _is_known(calls, function, node):
                reason = f"`{short(node)}` in `{function.qualname}` may not be traceable"
        if reason is not None:
            return reason
    return None


def _aliases(calls: ModuleCalls, function: Definition, inputs: frozenset[str]) -> dict[str, int]:
    """Names that may refer to what comes from outside, with the last line where they do: it must not be written."""
    bound = [
        (part.id, node, _shared(calls, function, node.iter if isinstance(node, ast.For) else node.value))
        for node in walk_scope(function.node)
        if isinstance(node, (ast.Assign, ast.For))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for part in walk_in_layers(target)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    ]
    found = dict.fromkeys(inputs, _ALWAYS)
    for name, node, shared in bound:
        # A parameter that certainly gets a new tensor is one from there on.
        if name in inputs and not shared and node in function.node.body:
            found[name] = min(found[name], node.lineno)
    while True:
        more = {
            name
            for name, node, shared in bound
            if found.get(name) != _ALWAYS and any(node.lineno <= found.get(each, -1) for each in shared)
        }
        if not more:
            return found
        found |= dict.fromkeys(more, _ALWAYS)


def _shared(calls: ModuleCalls, function: Definition, node: ast.expr) -> set[str]:
    """Names whose memory the value of an expression may share."""
    if isinstance(node, ast.Name):
        return {node.id}
    parts = aliasing.shared_parts(node, lambda call: _effect(calls, function, call))
    return {name for part in parts for name in _shared(calls, function, part)}


def _effect(calls: ModuleCalls, function: Definition, call: ast.Call) -> aliasing.Effect:
    """What a call does with memory, where a method is taken for that of a tensor."""
    called = call.func
    qualified = calls.qualified(called)
    if isinstance(called, ast.Name):
        return aliasing.of_builtin(called.id, call) if qualified is None else aliasing.unknown(call)
    if not isinstance(called, ast.Attribute) or calls.callee(function, call) is not None:
        return aliasing.unknown(call)
    if qualified is not None:
        math = qualified.startswith("math.")
        return aliasing.Effect() if math else aliasing.of_operator(torch_api.torch_function(qualified), call)
    if is_name(called.value, "self"):
        made = calls.constructions(function.owner, called.attr)
        layers = [(torch_api.torch_module_class(calls.qualified(each.func)), each) for each in made]
        effects = [aliasing.of_layer(layer, each, call) for layer, each in layers]
        return max(effects, key=lambda each: len(each.shares), default=aliasing.unknown(call))
    return aliasing.of_operator(called.attr, call, called.value)


def _counted_names(function: Definition) -> set[str]:
    """Variables of loops over ranges."""
    return {
        part.id
        for node in walk_scope(function.node)
        if isinstance(node, ast.For) and getattr(getattr(node.iter, "func", None), "id", "") in {"range", "enumerate"}
        for part in walk_in_layers(node.target.elts[0] if isinstance(node.target, ast.Tuple) else node.target)
        if isinstance(part, ast.Name)
    }


def _is_static_index(node: ast.expr, counted: Collection[str]) -> bool:
    """True for slices, numbers, variables that count, and indices of packed rows."""
    if isinstance(node, ast.Tuple):
        return all(_is_static_index(part, counted) for part in node.elts)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    root = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(node, (ast.Slice, ast.Constant)) or (isinstance(root, ast.Name) and root.id in counted)


def traced_nodes(function: Definition) -> Iterator[ast.AST]:
    """Nodes that run, without a dispatch that was put in front."""
    for statement in function.node.body:
        stack: list[ast.AST] = [] if _is_dispatch(statement) else [statement]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.If) and is_compile_path(node):
                stack += node.body
                continue
            yield node
            if node is statement or not isinstance(node, SCOPES):
                stack += children(node)


def is_compile_path(node: ast.If) -> bool:
    """True for `if torch.compiler.is_compiling() and n > 0:` with the original behind it, which is not traced then."""
    test = node.test.values[0] if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else node.test
    return bool(node.orelse) and isinstance(test, ast.Call) and (dotted(test.func) or "").endswith("is_compiling")


def _why_not_form(calls: ModuleCalls, function: Definition, node: ast.AST, outside: Mapping[str, int]) -> str | None:
    where = f"in `{function.qualname}`"
    if isinstance(node, (*_FORBIDDEN, *_MORE_FORBIDDEN)):
        return f"`{short(node)}` {where} cannot be traced under `torch.cond`"
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete)):
        targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else [node.target]
        if any(isinstance(part, ast.Attribute) for target in targets for part in _places(target)):
            return f"`{short(node)}` {where} writes an attribute"
        places = [part.value for target in targets for part in _places(target) if isinstance(part, ast.Subscript)]
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            places.append(node.target)
        if _is_outside(calls, function, places, outside):
            return f"`{short(node)}` {where} writes into an argument"
    if isinstance(node, ast.Call) and calls.callee(function, node) is None:
        effect = _effect(calls, function, node)
        if effect.known and _is_outside(calls, function, effect.writes, outside):
            return f"`{short(node)}` {where} writes into an argument"
    if isinstance(node, (ast.If, ast.IfExp)) and not _is_python(function, node.test):
        return f"`{short(node.test)}` {where} may depend on data"
    if isinstance(node, ast.Assert) and any(
        isinstance(part, ast.Attribute) and part.attr in {"any", "all"} for part in walk_in_layers(node.test)
    ):
        return f"`{short(node.test)}` {where} may depend on data"
    if isinstance(node, ast.Raise):
        return None if _is_static_error(function, node) else f"`{short(node)}` {where} may depend on data"
    if isinstance(node, ast.For) and not _is_counted(node.iter):
        return f"`{short(node.iter)}` {where} may depend on data"
    return None


def _is_outside(
    calls: ModuleCalls, function: Definition, written: Sequence[ast.expr], outside: Mapping[str, int]
) -> bool:
    return any(each.lineno <= outside.get(name, -1) for each in written for name in _shared(calls, function, each))


def _places(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _is_python(function: Definition, test: ast.expr) -> bool:
    """True for tests of None, of sizes, and of parameters and attributes that are Python flags."""
    if isinstance(test, ast.BoolOp):
        return all(_is_python(function, each) for each in test.values)
    if isinstance(test, ast.UnaryOp):
        return _is_python(function, test.operand)
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        none = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
        return none or all(_is_size(side) or isinstance(side, ast.Constant) for side in sides)
    if isinstance(test, ast.Name):
        return any(_is_flag(each, default) for each, default in _defaults(function) if each.arg == test.id)
    return isinstance(test, ast.Attribute) and test.attr == "training" and is_name(test.value, "self")


def _defaults(function: Definition) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    args = [*function.node.args.posonlyargs, *function.node.args.args]
    defaults = function.node.args.defaults
    yield from zip(args, [*([None] * (len(args) - len(defaults))), *defaults], strict=True)


def _is_flag(argument: ast.arg, default: ast.expr | None) -> bool:
    """True for `flag=False`, `flag: bool`, and a flag without a value, which is what the choice is about."""
    python = isinstance(default, ast.Constant) and (isinstance(default.value, bool) or default.value is None)
    return python or (argument.annotation is not None and is_python_annotation(ast.unparse(argument.annotation)))


def _is_size(node: ast.expr) -> bool:
    """True for sizes, and for what is computed from them with names and numbers."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return any(map(_is_size, node.elts)) and all(isinstance(each, _NUMBERS) or _is_size(each) for each in node.elts)
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(map(_is_size, sides)) and all(isinstance(each, _NUMBERS) or _is_size(each) for each in sides)
    if isinstance(node, ast.UnaryOp):
        return _is_size(node.operand)
    if isinstance(node, ast.Subscript):
        return _is_size(node.value)
    if isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Attribute):
            return called.attr in {"size", "dim", "numel"} and not isinstance(called.value, ast.Call)
        python = isinstance(called, ast.Name) and called.id in {"list", "tuple", "min", "max", "int"}
        own = python and any(map(_is_size, node.args))
        return getattr(called, "id", "") == "len" or (
            own and all(isinstance(each, _NUMBERS) or _is_size(each) for each in node.args)
        )
    return isinstance(node, ast.Attribute) and node.attr in {"shape", "ndim"}


def _is_static_error(function: Definition, node: ast.Raise) -> bool:
    return any(
        isinstance(each, ast.If) and node in each.body and _is_python(function, each.test)
        for each in walk_scope(function.node)
    )


def _is_counted(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"range", "enumerate", "zip"}


def _is_known(calls: ModuleCalls, function: Definition, call: ast.Call) -> bool:
    """True for a function or method of torch with a size that does not depend on data, a layer of torch, a builtin."""
    name = dotted(call.func)
    if isinstance(call.func, ast.Name):
        literal = call.func.id == "float" and all(isinstance(each, ast.Constant) for each in call.args)
        return literal or call.func.id in _BUILTINS
    if not isinstance(call.func, ast.Attribute) or call.func.attr in _READS:
        return False
    if is_division(call) and _is_size(call.args[0]):
        return False  # a size that has to be read back once sizes are dynamic
    if _is_of_library(calls, call.func):
        # `torch.where(mask)` alone is `nonzero`.
        words = {word.arg for word in call.keywords}
        changing = call.func.attr in _CHANGES_STATE or words & {"out", "max_norm"}
        return not changing and (call.func.attr != "where" or len(call.args) > 1)
    if calls.qualified(call.func) is not None:
        return False  # a function of another library, or of the project
    if name is not None and name.startswith("self."):
        made = calls.constructions(function.owner, call.func.attr) if name.count(".") == 1 else []
        return bool(made) and all(_is_stateless(calls, each) for each in made)
    known = torch_api.RETURNS_TENSOR | _MORE_METHODS | torch_api.CASTS.keys() | torch_api.PYTHON_METHODS.keys()
    return call.func.attr in known or call.func.attr in {"to", "type_as", "masked_fill_"}


def _is_of_library(calls: ModuleCalls, node: ast.expr) -> bool:
    return (calls.qualified(node) or "").startswith(_LIBRARIES)


def _is_stateless(calls: ModuleCalls, made: ast.Call) -> bool:
    """True for the construction of a layer that changes nothing when it is called."""
    name = torch_api.torch_module_class(calls.qualified(made.func))
    if any(word.arg in _CHANGING_WORDS for word in made.keywords):
        return False
    inner = [each for each in made.args if isinstance(each, ast.Call)]
    whole = name == "Sequential" and len(inner) == len(made.args)
    return name in LAYERS or (whole and all(_is_stateless(calls, each) for each in inner))
