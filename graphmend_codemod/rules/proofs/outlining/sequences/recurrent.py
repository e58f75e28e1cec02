"""Recurrent layers as operators: Dynamo refuses to look at `nn.LSTM`, `nn.GRU` and `nn.RNN`, whose shapes are known.

The statement that calls the layer, or reads a number of it, gets a compile path in which an operator runs the layer and
a constant stands for the number. The layer's parameters are inputs of the operator, so that gradients reach them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import elements_of, is_attribute, is_basic, is_none, is_target
from graphmend_codemod.analysis.scope import children, of_kind, walk_in_layers
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.rules.framework.edits import two_paths, under
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import definition_before, one_operator, operator_name
from graphmend_codemod.rules.proofs.outlining.sequences.recurrent_layers import NESTED, kind_of
from graphmend_codemod.rules.proofs.outlining.texts import part
from graphmend_codemod.rules.proofs.outlining.texts.layers import RECURRENT

_NUMBERS = frozenset("num_layers hidden_size input_size proj_size bidirectional batch_first bias dropout mode".split())
_PACKS = frozenset({"pack_padded_sequence", "pack_sequence"})
_COMMENT = "# torch.compile does not trace recurrent layers: it calls this one as one operator."


def edit(site: Site, statement: ast.stmt, layers: list[ast.Attribute]) -> Edit:
    """The compile path in front of the statement; NotProven where it does more with a layer than call it."""
    demand_torch(site)
    outer = {id(child): part for part in (statement, *walk_in_layers(statement)) for child in children(part)}
    compiling = "torch.compiler.is_dynamo_compiling()"
    if all(_flattens(outer, layer) for layer in layers):
        asked = [_is_any_kind(site, layer) for layer in layers if kind_of(site, layer) == "RNNBase"]
        head = under(site.header("if", [compiling, *asked]), "pass") + "\nelse:\n    "
        parts = (head if asked else f"if not {compiling}:\n    ", site.original(statement, 1))
        alone = (_shared("_is_recurrent"),) if asked else ()
        return Edit((Replacement(site.span(statement), parts),), imports=("torch",), helpers=alone)
    written: dict[int, tuple[ast.expr, str]] = {}
    conditions = [compiling]
    helpers: dict[str, Helper] = {}
    for layer in layers:
        further = outer[id(layer)]
        if isinstance(further, ast.Call) and further.func is layer:
            conditions.append(_condition(site, layer, further))
            name = operator_name(site, layer.attr)
            given = [site.text(layer.value), *map(site.text, arguments(further))]
            helpers[name] = operator(site, layer, name)
            if site.scripted:
                helpers[f"{name} or not"] = choice(site, layer, name)
                name = helpers[f"{name} or not"].name
            written[id(further)] = (further, f"{name}({', '.join(given)})")
        elif isinstance(further, ast.Attribute) and further.attr in _NUMBERS and isinstance(further.ctx, ast.Load):
            if kind_of(site, layer) == "RNNBase":
                conditions.append(_is_any_kind(site, layer))
            text = f'_number_of_layer({site.text(layer.value)}, "{layer.attr}", "{further.attr}")'
            written[id(further)] = (further, text)
        else:
            raise NotProven(f"`{speculation.short(further)}` does more with the layer than call it")
    inner = site.but(written=written).text(statement)
    conditions = [site.compiling] if site.scripted else conditions
    needed = (*common(site), *helpers.values())
    return two_paths(site, statement, conditions, [_COMMENT, inner], imports=("torch",), helpers=needed)


def _is_any_kind(site: Site, layer: ast.Attribute) -> str:
    """The condition for a layer that is read, not called, and whose class the constructor chooses."""
    if site.scripted:
        raise NotProven("the constructor chooses the class of the layer, which TorchScript cannot ask")
    return f'_is_recurrent({site.text(layer.value)}, "{layer.attr}", torch.nn.RNNBase, "cpu")'


def _flattens(outer: dict[int, ast.AST], layer: ast.Attribute) -> bool:
    """True for `self.lstm.flatten_parameters()`, which changes where parameters lie and nothing else."""
    method = outer[id(layer)]
    call = outer.get(id(method))
    alone = isinstance(method, ast.Attribute) and isinstance(call, ast.Call) and isinstance(outer[id(call)], ast.Expr)
    return alone and method.attr == "flatten_parameters"  # type: ignore[attr-defined]


def _condition(site: Site, layer: ast.Attribute, call: ast.Call) -> str:
    names: dict[str, None] = {}
    for given in arguments(call):
        names.update(dict.fromkeys(names_in(site, given)))
    if not names:
        raise NotProven(f"cannot infer that `{speculation.short(arguments(call)[0])}` is a Tensor")
    kind = kind_of(site, layer)
    own = site.text(layer.value)
    return f'_fits_recurrent({own}, "{layer.attr}", torch.nn.{kind}, {", ".join(names)})'


def arguments(call: ast.Call) -> list[ast.expr]:
    """The input and, where it is given, the first state; NotProven for other arguments."""
    words = {word.arg: word.value for word in call.keywords}
    found = [*call.args, *(words[each] for each in ("input", "hx") if each in words)]
    given = bool(call.args) != ("input" in words)
    if not given or len(found) > 2 or len(found) != len(call.args) + len(call.keywords):
        raise NotProven(f"`{speculation.short(call)}` has arguments other than the input and the first state")
    return found


def names_in(site: Site, given: ast.expr) -> Iterator[str]:
    """What an argument is made of, tensors first to be asked; NotProven for what is no tensor."""
    if is_none(given):
        return
    if isinstance(given, (ast.Tuple, ast.List)):
        for each in given.elts:
            yield from names_in(site, each)
        return
    base = _changed_in_layout(site, given)
    if isinstance(base, ast.Name):
        if _is_packed(site, base.id):
            raise NotProven(
                f"`{base.id}` is a packed sequence, whose size depends on data; pass padded input, and mask the output"
            )
        yield base.id
        return
    if _is_held(site, base):
        yield site.text(base)
        return
    if isinstance(given, ast.Starred) or not site.value(given).is_tensor:
        raise NotProven(f"cannot infer that `{speculation.short(given)}` is a Tensor; give it a name before")
    own = site.evaluator.scope.self_name
    for one in walk_in_layers(given):
        local = isinstance(one, ast.Name) and one.id != own and site.evaluator.scope.is_local(one.id)
        if local and not site.value(one).is_python:  # type: ignore[arg-type]
            yield one.id  # type: ignore[attr-defined]


def _changed_in_layout(site: Site, given: ast.expr) -> ast.expr:
    """`x` for `x.transpose(0, 1).contiguous()` and `x[..., 1:]`, which of tensors are tensors."""
    while True:
        if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and site.resolve(given.func) is None:
            plain = given.func.attr in _LAYOUT and all(isinstance(each, ast.Constant) for each in given.args)
            if not plain or given.keywords:
                return given
            given = given.func.value
        elif isinstance(given, ast.Subscript) and all(map(is_basic, elements_of(given.slice))):
            given = given.value
        else:
            return given


_LAYOUT = frozenset({"transpose", "contiguous", "detach", "clone", "float", "unsqueeze", "squeeze"})


def _is_held(site: Site, node: ast.expr) -> bool:
    """True for `self.hidden` and `state["hidden"]`, of which the header asks what they are."""
    if isinstance(node, ast.Subscript):
        text = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        return text and isinstance(node.value, ast.Name)
    own = is_attribute(node, site.evaluator.scope.self_name)
    return own and not speculation.is_loud_property(site.evaluator, node.attr)  # type: ignore[attr-defined]


def _is_packed(site: Site, name: str) -> bool:
    """True where the function packs a sequence under this name, and does so in any case."""
    bound = [each.value for each in of_kind(site.place.above(), ast.Assign) if is_target(each, name)]
    return any((site.resolve(each.func) or "").rpartition(".")[2] in _PACKS for each in of_kind(bound, ast.Call))


def operator(site: Site, layer: ast.Attribute, name: str) -> Helper:
    """The operator of this name that runs the layer."""
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
            f"def {name}({own}, *given):",
            f'    """`{text}` as one operator for torch.compile."""',
            f"    return {text}(*given)",
        ]
    )
    return Helper(name, source, after=(*definition_before(site), "_one_operator", "_recurrent_shapes"))


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
    names = ("_is_recurrent", "_number_of_layer", "_fits_recurrent", "_recurrent_shapes")
    return (*one_operator(site), *map(_shared, names))


def _shared(name: str) -> Helper:
    return Helper(name, part(RECURRENT, name), after=("_one_operator",), shared=True)
