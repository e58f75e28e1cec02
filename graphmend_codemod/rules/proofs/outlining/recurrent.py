"""Recurrent layers as operators: Dynamo refuses to look at `nn.LSTM`, `nn.GRU` and `nn.RNN`, whose shapes are known.

The statement that calls the layer, or reads a number of it, gets a compile path in which an operator runs the layer and
a constant stands for the number. The layer's parameters are inputs of the operator, so that gradients reach them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_name, is_none
from graphmend_codemod.analysis.scope import children, walk_in_layers, walk_scope
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.rules.framework.edits import under
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import definition_before, one_operator
from graphmend_codemod.rules.proofs.outlining.recurrent_layers import NESTED, kind_of
from graphmend_codemod.rules.proofs.outlining.shared_helpers import operator_name
from graphmend_codemod.rules.proofs.outlining.texts import part
from graphmend_codemod.rules.proofs.outlining.texts.layers import RECURRENT

_NUMBERS = frozenset("num_layers hidden_size input_size proj_size bidirectional batch_first bias dropout mode".split())
_PACKS = frozenset({"pack_padded_sequence", "pack_sequence"})
_COMMENT = "# torch.compile does not trace recurrent layers: it calls this one as one operator."


def edit(site: Site, statement: ast.stmt, layers: list[ast.Attribute]) -> Edit:
    """The compile path in front of the statement; NotProven where it does more with a layer than call it."""
    demand_torch(site)
    outer = {id(child): part for part in (statement, *walk_in_layers(statement)) for child in children(part)}
    if all(_flattens(outer, layer) for layer in layers):
        parts = ("if not torch.compiler.is_dynamo_compiling():\n    ", site.original(statement, 1))
        return Edit((Replacement(site.span(statement), parts),), imports=("torch",))
    written: dict[int, tuple[ast.expr, str]] = {}
    conditions = ["torch.compiler.is_dynamo_compiling()"]
    helpers: dict[str, Helper] = {}
    for layer in layers:
        further = outer[id(layer)]
        if isinstance(further, ast.Call) and further.func is layer:
            conditions.append(_condition(site, layer, further))
            operator = operator_name(site, layer.attr)
            arguments = [site.text(layer.value), *map(site.text, further.args)]
            helpers[operator] = _operator(site, layer, operator)
            if site.scripted:
                helpers[f"{operator} or not"] = choice(site, layer, operator)
                operator = helpers[f"{operator} or not"].name
            written[id(further)] = (further, f"{operator}({', '.join(arguments)})")
        elif isinstance(further, ast.Attribute) and further.attr in _NUMBERS and isinstance(further.ctx, ast.Load):
            text = f'_number_of_layer({site.text(layer.value)}, "{layer.attr}", "{further.attr}")'
            written[id(further)] = (further, text)
        else:
            raise NotProven(f"`{speculation.short(further)}` does more with the layer than call it")
    inner = site.but(written=written).text(statement)
    conditions = [site.compiling] if site.scripted else conditions
    parts = (under(site.header("if", conditions), _COMMENT, inner) + "\nelse:\n    ", site.original(statement, 1))
    return Edit(
        (Replacement(site.span(statement), parts),), imports=("torch",), helpers=(*common(site), *helpers.values())
    )


def _flattens(outer: dict[int, ast.AST], layer: ast.Attribute) -> bool:
    """True for `self.lstm.flatten_parameters()`, which changes where parameters lie and nothing else."""
    method = outer[id(layer)]
    call = outer.get(id(method))
    alone = isinstance(method, ast.Attribute) and isinstance(call, ast.Call) and isinstance(outer[id(call)], ast.Expr)
    return alone and method.attr == "flatten_parameters"  # type: ignore[attr-defined]


def _condition(site: Site, layer: ast.Attribute, call: ast.Call) -> str:
    if call.keywords or not 1 <= len(call.args) <= 2:
        raise NotProven(f"`{speculation.short(call)}` has arguments other than the input and the first state")
    names: dict[str, None] = {}
    for given in call.args:
        names.update(dict.fromkeys(names_in(site, given)))
    if not names:
        raise NotProven(f"cannot infer that `{speculation.short(call.args[0])}` is a Tensor")
    kind = kind_of(site, layer)
    own = site.text(layer.value)
    return f'_fits_recurrent({own}, "{layer.attr}", torch.nn.{kind}, {", ".join(names)})'


def names_in(site: Site, given: ast.expr) -> Iterator[str]:
    """The locals that an argument is made of, tensors first to be asked; NotProven for what is no tensor."""
    if is_none(given):
        return
    if isinstance(given, (ast.Tuple, ast.List)):
        for each in given.elts:
            yield from names_in(site, each)
        return
    if isinstance(given, ast.Name):
        if _is_packed(site, given.id):
            raise NotProven(
                f"`{given.id}` is a packed sequence, whose size depends on data; pass padded input, and mask the output"
            )
        yield given.id
        return
    if isinstance(given, ast.Starred) or not site.value(given).is_tensor:
        raise NotProven(f"cannot infer that `{speculation.short(given)}` is a Tensor; give it a name before")
    own = site.evaluator.scope.self_name
    for one in walk_in_layers(given):
        local = isinstance(one, ast.Name) and one.id != own and site.evaluator.scope.is_local(one.id)
        if local and not site.value(one).is_python:  # type: ignore[arg-type]
            yield one.id  # type: ignore[attr-defined]


def _is_packed(site: Site, name: str) -> bool:
    """True where the function packs a sequence under this name."""
    for node in walk_scope(site.evaluator.scope.node):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            bound = any(is_name(target, name) for target in node.targets)
            if bound and (site.resolve(node.value.func) or "").rpartition(".")[2] in _PACKS:
                return True
    return False


def _operator(site: Site, layer: ast.Attribute, operator: str) -> Helper:
    own, kind = site.text(layer.value), kind_of(site, layer) or ""
    text = site.text(layer)
    source = "\n".join(
        [
            "@_one_operator(",
            f'    "{layer.attr}",',
            f"    shapes=lambda {own}, x, *_: _recurrent_shapes({text}, x),",
            f"    nested={NESTED[kind]},",
            "    untraced=True,",
            ")",
            f"def {operator}({own}, *given):",
            f'    """`{text}` as one operator for torch.compile."""',
            f"    return {text}(*given)",
        ]
    )
    return Helper(operator, source, after=(*definition_before(site), "_one_operator", "_recurrent_shapes"))


def choice(site: Site, layer: ast.Attribute, operator: str) -> Helper:
    """A function that asks the conditions for `operator`, for code that TorchScript compiles as well."""
    own, kind, name = site.text(layer.value), kind_of(site, layer), operator.replace("_operator", "_in_graph")
    fits = f'_fits_recurrent({own}, "{layer.attr}", torch.nn.{kind}, *given)'
    source = "\n".join(
        [
            f"def {name}({own}, *given):",
            f'    """`{operator}` where it takes what is given, and else what it runs."""',
            f"    if torch.compiler.is_dynamo_compiling() and {fits}:",
            f"        return {operator}({own}, *given)",
            f"    return {operator}.code({own}, *given)",
        ]
    )
    return Helper(name, source, after=(operator,))


def common(site: Site) -> tuple[Helper, ...]:
    """What operators of recurrent layers share in a file."""
    each = {}
    for name in ("_is_recurrent", "_number_of_layer", "_fits_recurrent", "_recurrent_shapes"):
        each[name] = part(RECURRENT, name)
    return (
        *one_operator(site),
        *(Helper(name, text, after=("_one_operator",), shared=True) for name, text in each.items()),
    )
