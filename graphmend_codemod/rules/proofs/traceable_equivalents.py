"""Calls that Dynamo never traces, each with a traceable equivalent."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import elements_of, is_attribute, is_name, only_target, reads_name
from graphmend_codemod.analysis.scope import dotted, of_kind, own_parts, walk_scope
from graphmend_codemod.analysis.speculation import reads_loudly, short
from graphmend_codemod.analysis.torch_api import CLOCKS, VARIABLE
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs import byte_masks, library_calls, old_constructors, warning_filters
from graphmend_codemod.rules.proofs import traceable_texts as texts
from graphmend_codemod.rules.proofs.twin import Make, Twin, called, either

_OF_CONTAINERS = frozenset((*dir(dict), *dir(list), *dir(set)))


def _variable(site: Site, statement: ast.stmt, call: ast.Call) -> Twin | None:
    """A `Variable`, but for one that certainly requires a gradient: the helper would break the graph as before."""
    asked = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "requires_grad")]
    if any(isinstance(each, ast.Constant) and each.value for each in asked):
        raise NotProven("it requires a gradient; manually write `x.detach().requires_grad_()` outside of compiled code")
    return called("_variable_while_tracing", texts.VARIABLE)(site, statement, call)


_FLAGS = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")


def _cudnn_flags(site: Site, statement: ast.stmt, call: ast.Call) -> Twin:
    """Flags that nobody asks for where there is no device of CUDA; with one, the graph breaks as before."""
    if not isinstance(statement, ast.With) or not any(item.context_expr is call for item in statement.items):
        raise NotProven("it is no context of a `with` statement")
    if len(call.args) > len(_FLAGS) or any(word.arg not in _FLAGS for word in call.keywords):
        raise NotProven("it is given a flag that not every version of torch has")
    for part in ast.walk(site.source.parse()):
        if not isinstance(part, ast.Attribute) or part.attr not in _FLAGS or not isinstance(part.ctx, ast.Load):
            continue
        if (site.resolve_global(part) or "").startswith("torch.backends.cudnn"):
            raise NotProven(f"`{short(part)}` in this file reads a flag; manually read it outside of the context")
    twin = called("_cudnn_flags_while_tracing", texts.CUDNN_FLAGS)(site, statement, call)
    assert twin is not None
    return twin._replace(conditions=(site.compiling, f"not {site.torch}.cuda.is_available()"))


def _filtered(site: Site, statement: ast.stmt, call: ast.Call) -> Twin | None:
    """A block in which warnings are left out, with what it sets: either alone would let a filter stay."""
    filters = warning_filters.droppable(site, statement)
    twin = called("_catch_warnings_while_tracing", texts.CATCH_WARNINGS)(site, statement, call)
    return twin._replace(without=filters) if twin is not None and isinstance(statement, ast.With) else None


def _copied(site: Site, statement: ast.stmt, call: ast.Call) -> Twin:
    """`x.copy()` for `copy.copy(x)`, of Python's own containers."""
    given = site.text(call.args[0]) if len(call.args) == 1 and dotted(call.args[0]) is not None else None
    if given is None or reads_loudly(site.evaluator, given):
        raise NotProven("its argument is no name; assign it to a variable first")
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {given, *filter(None, map(dotted, targets))}
    for part in ast.walk(site.evaluator.scope.node):
        copied = isinstance(part, ast.Attribute) and (part.value is call or dotted(part.value) in names)
        if copied and isinstance(part, ast.Attribute) and part.attr not in _OF_CONTAINERS:
            what = f"`{short(part)}` is no attribute of a dict, list or set"
            raise NotProven(f"{what}, and Dynamo traces a copy of nothing else; manually build the new object")
    return Twin(call, call, f"{given}.copy()", (site.compiling, f"type({given}) in (dict, list, set)"), raises=False)


def _iterated(inner: Make) -> Make:
    """The same for a call whose result is iterated over and nothing else."""

    def make(site: Site, statement: ast.stmt, call: ast.Call) -> Twin | None:
        if not call.args:
            raise NotProven("the code updates the progress bar itself; do that only in eager mode")
        if not _is_iterated(site, statement, call):
            raise NotProven(
                "the progress bar is used elsewhere; "
                "manually iterate over the plain range under `torch.compiler.is_compiling()`"
            )
        return inner(site, statement, call)

    return make


_CONTAINERS = {"builtins.list": "list", "typing.List": "list", "builtins.dict": "dict", "typing.Dict": "dict"}
_PASSED_ON = frozenset({"builtins.enumerate", "builtins.zip", "builtins.list", "builtins.tuple", "builtins.sum"})


def _is_iterated(site: Site, statement: ast.stmt, call: ast.Call) -> bool:
    """True for `for x in call`, also under `enumerate` and `zip`."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.For, ast.comprehension)) and node.iter is call:
            return True
        if isinstance(node, ast.Call) and call in node.args and site.resolve(node.func) in _PASSED_ON:
            return True
    return False


def _class_asked(site: Site, statement: ast.stmt, call: ast.Call) -> Twin | None:
    """`isinstance` for `torch.jit.isinstance` of classes that are no containers of others."""
    if any(_is_eager(site, part, call) for part in ast.walk(statement)):
        return None
    if len(call.args) != 2 or call.keywords:
        raise NotProven("the call is not of the form `torch.jit.isinstance(value, type)`")
    asked = elements_of(call.args[1])
    elements = _elements_asked(site, call) if len(asked) == 1 else None
    for each in asked if elements is None else ():
        if not _is_plain_class(site, each):
            raise NotProven(f"`{short(each)}` may check the elements of a container; manually check with `isinstance`")
    if elements is not None:
        if site.scripted:
            raise NotProven(f"TorchScript compiles no loop over what `{short(call.args[1])}` asks for")
        return Twin(call, call, elements, (site.compiling,), test=True)
    if site.scripted and not _tells_only_inside(site, statement, call):
        raise NotProven(
            "TorchScript also compiles this function, and learns the type of the value from this call; "
            "manually ask it under `torch.jit.is_scripting()` only"
        )
    text = f"isinstance({', '.join(site.text(each) for each in call.args)})"
    return Twin(call, call, text, (site.compiling,), test=True)


def _is_plain_class(site: Site, node: ast.expr) -> bool:
    qualified = site.resolve(node) or ""
    plain = qualified.startswith("builtins.") or qualified == "torch.Tensor"
    return plain and qualified not in {"builtins.list", "builtins.dict", "builtins.tuple"}


def _elements_asked(site: Site, call: ast.Call) -> str | None:
    """`isinstance(x, list) and all(...)` for `list[Tensor]` and `dict[str, Tensor]`; None for any other type."""
    value, kind = call.args
    if not isinstance(kind, ast.Subscript) or not isinstance(value, (ast.Name, ast.Attribute)):
        return None
    parts = elements_of(kind.slice)
    origin = _CONTAINERS.get(site.resolve(kind.value) or "")
    if origin is None or len(parts) != (2 if origin == "dict" else 1):
        return None
    if not all(_is_plain_class(site, part) for part in parts):
        return None
    spelled, names = site.text(value), [site.text(part) for part in parts]
    if origin == "list":
        return f"(isinstance({spelled}, list) and all(isinstance(each, {names[0]}) for each in {spelled}))"
    asked = f"isinstance(key, {names[0]}) and isinstance(each, {names[1]})"
    return f"(isinstance({spelled}, dict) and all({asked} for key, each in {spelled}.items()))"


def _tells_only_inside(site: Site, statement: ast.stmt, call: ast.Call) -> bool:
    """True where TorchScript learns nothing from a call but what it needs in the branch that the call guards.

    From `and` and `or` it does not learn what a value is where they are false, nor that a last branch is never taken.
    """
    value = call.args[0]
    if not isinstance(statement, ast.If) or statement.test is not call or not isinstance(value, ast.Name):
        return False
    last: list[ast.stmt] = [statement]
    while len(last) == 1 and isinstance(last[0], ast.If):
        test = last[0].test
        if not isinstance(test, ast.Call) or not test.args or not is_name(test.args[0], value.id):
            return False
        last = last[0].orelse
    plain = all(isinstance(each, ast.Raise) and not _reads_names(each) for each in last)
    after = [part for part in walk_scope(site.evaluator.scope.node) if isinstance(part, ast.Name)]
    return plain and not any(part.id == value.id and part.lineno > (statement.end_lineno or 0) for part in after)


def _reads_names(node: ast.Raise) -> bool:
    """True for an exception that is made of anything but literals."""
    called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return any(isinstance(part, ast.Name) and part is not called for part in ast.walk(node))


def _is_eager(site: Site, part: ast.AST, call: ast.Call) -> bool:
    """True for `not torch.compiler.is_compiling() and call`."""
    if not isinstance(part, ast.BoolOp) or not isinstance(part.op, ast.And) or part.values[-1] is not call:
        return False
    return any(site.value(each).compiling is False for each in part.values[:-1])


def _tracing_asked(site: Site, statement: ast.stmt, call: ast.Call) -> Twin:
    return either(site, statement, call, f"{site.torch}.jit.is_tracing")


def _drawn_by_python(site: Site, statement: ast.stmt, call: ast.Call) -> Twin | None:
    """None where a test reads the number, which GM111 takes. Otherwise NotProven, although Dynamo traces an equivalent:
    Inductor of torch 2.13 reads the bits of what `random.uniform` draws as another dtype."""
    if any(part is call for test in _tests(statement) for part in ast.walk(test)):
        return None
    compared = (part for part in ast.walk(statement) if isinstance(part, ast.Compare))
    if any(part is call for each in compared for part in ast.walk(each)):
        raise NotProven("a test reads the number; manually draw it before compiled code, and pass in what is decided")
    raise NotProven(
        "Inductor of torch 2.13 computes with other numbers than `random.uniform` draws, which Dynamo traces; manually "
        "draw it with `torch.rand(())`, or before compiled code and pass it in as a tensor"
    )


def _default_device(site: Site, statement: ast.stmt, call: ast.Call) -> Twin | None:
    """The device of a new tensor is the default one."""
    if call.args or call.keywords:
        return None
    return Twin(call, call, f"{site.torch}.empty(0).device", (site.compiling,))


def _left_out(site: Site, statement: ast.stmt, call: ast.Call) -> Twin:
    """A call for memory alone, which compiled code does without."""
    if not isinstance(statement, ast.Expr) or statement.value is not call or call.args or call.keywords:
        raise NotProven("its result is used; manually call it between calls of compiled code")
    return Twin(call, call, "", (site.compiling,), raises=False)


def _clock(site: Site, statement: ast.stmt, call: ast.Call) -> Twin:
    """A time that compiled code never tells anybody may be any number: messages are left out of it."""
    if not _is_unread(site, statement, set()):
        raise NotProven("compiled code reads what the clock says; manually measure around compiled code")
    return Twin(call, call, "0.0", (site.compiling,), raises=False)


def _is_unread(site: Site, statement: ast.stmt, seen: set[str]) -> bool:
    """True for a name that is read where torch.compile does not get to, or to compute another one of this kind."""
    if site.at(statement) is None:
        return True
    target = only_target(statement)
    if not isinstance(target, ast.Name) or not isinstance(statement, ast.Assign):
        return False
    if any(isinstance(part, ast.Call) and site.resolve(part.func) not in CLOCKS for part in ast.walk(statement.value)):
        return False
    if target.id in seen:
        return True
    seen.add(target.id)
    function = site.evaluator.scope.node
    if not site.evaluator.scope.is_local(target.id) or _is_shared(function, target.id):
        return False
    if any(inner.id == target.id for inner in _inner_names(function)):
        return False
    reads = [
        each
        for each in of_kind(walk_scope(function), ast.stmt)
        if any(reads_name(part, target.id) for part in own_parts(each))
    ]
    return all(_is_unread(site, each, seen) for each in reads)


def _is_shared(function: ast.AST, name: str) -> bool:
    return any(isinstance(each, (ast.Global, ast.Nonlocal)) and name in each.names for each in walk_scope(function))


def _inner_names(function: ast.AST) -> list[ast.Name]:
    """Names in functions inside of a function, which may run whenever."""
    nested = [each for each in walk_scope(function) if isinstance(each, (ast.FunctionDef, ast.Lambda, ast.ClassDef))]
    return [part for each in nested for part in ast.walk(each) if isinstance(part, ast.Name)]


def _tests(statement: ast.stmt) -> list[ast.expr]:
    """The tests in a statement."""
    heads = (ast.If, ast.While, ast.Assert, ast.IfExp)
    return [node.test for node in ast.walk(statement) if isinstance(node, heads)]


BY_NAME: dict[str, Make] = {
    **dict.fromkeys(VARIABLE, _variable),
    **dict.fromkeys(
        (f"tqdm.{where}tqdm" for where in ("", "auto.", "std.", "notebook.", "autonotebook.", "asyncio.")),
        _iterated(called("_tqdm_while_tracing", texts.TQDM)),
    ),
    **dict.fromkeys(
        (f"tqdm.{where}trange" for where in ("", "auto.", "std.", "notebook.", "autonotebook.", "asyncio.")),
        _iterated(called("_trange_while_tracing", texts.TRANGE)),
    ),
    "torch.backends.cuda.sdp_kernel": called(
        "_sdp_kernel_while_tracing", texts.SDP_KERNEL, "nn.attention.sdpa_kernel"
    ),
    "torch.backends.cudnn.flags": _cudnn_flags,
    **dict.fromkeys((warning_filters.CATCHES, *warning_filters.SETS), _filtered),
    "copy.copy": _copied,
    "torch.jit.isinstance": _class_asked,
    "torch._C._is_tracing": _tracing_asked,
    "random.random": _drawn_by_python,
    "torch.get_default_device": _default_device,
    **dict.fromkeys(("numpy.finfo", "numpy.iinfo"), library_calls.limits),
    **dict.fromkeys(("opt_einsum.contract", "opt_einsum.contract.contract"), library_calls.contracted),
    **dict.fromkeys(CLOCKS, _clock),
    "gc.collect": _left_out,
    "scipy.fft.next_fast_len": called("_fast_length_while_tracing", texts.FAST_LENGTH),
    "scipy.fftpack.next_fast_len": called("_fftpack_length_while_tracing", texts.FFTPACK_LENGTH),
}  # fmt: skip
OLD_SIGNATURES = {"add_": ("alpha", 2), "addcmul_": ("value", 3), "addcdiv_": ("value", 3)}
"""Methods that take a number before their tensors, with the keyword for it and how many arguments there are then."""


def twin_of(site: Site, statement: ast.stmt, call: ast.Call) -> Twin | None:
    """What takes the place of a call; None where Dynamo traces it, NotProven with the reason where nothing can."""
    make = BY_NAME.get(site.resolve(call.func) or "")
    if make is not None:
        return make(site, statement, call)
    if isinstance(call.func, ast.Attribute) and call.func.attr in OLD_SIGNATURES and not call.keywords:
        return _new_signature(site, call.func, call)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "resize_":
        return _new_of_size(site, call.func.value, call)
    if byte_masks.is_mask_of_bytes(call):
        return byte_masks.bool_mask(site, statement, call)
    return old_constructors.new_form(site, call)


_SPECTRA = frozenset({"torchaudio.transforms.Spectrogram", "torchaudio.transforms.MelSpectrogram"})


def spectrum_of(site: Site, call: ast.Call) -> Twin | None:
    """A call of a helper for `self.spectrogram(x)`, a layer of torchaudio; the helper asks which class it has."""
    layer = call.func
    if not is_attribute(layer, site.evaluator.scope.self_name) or len(call.args) != 1 or call.keywords:
        return None
    if isinstance(call.args[0], ast.Starred) or site.value(layer).instance_of not in _SPECTRA:
        return None
    name = "_spectrogram_while_tracing"
    helper = Helper(name, texts.SPECTROGRAM.format(torch=site.torch).strip("\n"), shared=True)
    twin = f"{name}({site.text(layer)}, {site.text(call.args[0])})"
    return Twin(call, call, twin, (site.compiling,), (helper,))


def _new_of_size(site: Site, made: ast.expr, call: ast.Call) -> Twin | None:
    """`x.new_empty(n, m)` for `x.new().resize_(n, m)`: a tensor without elements of which nobody else knows."""
    if not isinstance(made, ast.Call) or made.args or made.keywords or call.keywords or not call.args:
        return None
    if not isinstance(made.func, ast.Attribute) or made.func.attr != "new" or dotted(made.func.value) is None:
        return None
    x = site.text(made.func.value)
    sizes = ", ".join(site.text(each) for each in call.args)
    return Twin(call, call, f"{x}.new_empty({sizes})", (site.compiling, f"isinstance({x}, {site.torch}.Tensor)"))


def _new_signature(site: Site, function: ast.Attribute, call: ast.Call) -> Twin | None:
    """`x.add_(y, alpha=2)` for `x.add_(2, y)`."""
    keyword, count = OLD_SIGNATURES[function.attr]
    if len(call.args) != count or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    owner = site.value(function.value)
    if owner.is_python or site.value(call.args[0]).is_tensor:
        return None
    known = owner.is_tensor and not owner.hint
    if not known and dotted(function.value) is None:
        raise NotProven(f"`{short(function.value)}` may not be a Tensor; assign it to a variable first")
    if sum(any(isinstance(part, ast.Call) for part in ast.walk(each)) for each in call.args) > 1:
        raise NotProven("its arguments would be evaluated in another order; assign one of them to a variable first")
    asked = () if known else (f"isinstance({site.text(function.value)}, {site.torch}.Tensor)",)
    number, *tensors = (site.text(each) for each in call.args)
    receiver = site.text(function.value)
    twin = f"{receiver}.{function.attr}({', '.join(tensors)}, {keyword}={number})"
    return Twin(call, call, twin, (site.compiling, *asked))
