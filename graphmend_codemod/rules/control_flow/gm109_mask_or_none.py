"""mask-or-none (GM109): a data-dependent branch that sets a mask to None if it masks nothing.

`if positions[0] > 0 or torch.all(mask == 1): mask = None` reads the device back for every call, and breaks the graph,
to save products that would change nothing. Under `torch.compile` the mask stays, and holds ones alone where it would
have been None for another reason.

All uses of the value are followed through the module: results of functions, calls, layers, choices by the class of a
layer. Each has to be `if mask is not None: x = x * mask[:, None]`, where ones keep values, dtype and memory of `x` as
they are; any other use is the reason for leaving the test. There has to be one place of the mask for each position,
which Dynamo knows while it traces; in calls where there are more, as in decoding with a cache, the test stays. The
function that calls must say how many positions there are: `positions = torch.arange(x.shape[1])` where none are given,
with an `x` that goes along with the mask. Where a method chooses that is given no positions, the compile path stands
around its call, and asks for the shape of the `x` that is handed on with its result. Rows are not compared: a mask with
more rows than its tensor is taken for a mistake, which eager mode overlooks where all of them are ones.

Layers of one kind alone may get the mask, out of a dict, `masks[layer.kind]`, or by a chain of tests. The compile path
asks for the class of what they call, also where the constructor takes that class out of a dict of the module. A dtype
that such a branch assigns, `dtype = x.dtype; x = (x * mask).to(dtype)`, may be read below it where it decides nothing:
`self.out(y.to(dtype))`, of a linear layer or a convolution, whose class the compile path asks for. Where that layer
refuses the dtype, as in eager mode for a mask that is not all ones, compiled code refuses it for one of ones, too.

A mask that stays may take the form that is added to scores: `mask = prepare(mask, x.dtype)`. Of ones that makes zeros,
which is known of transformers' functions. Under `torch.compile` it is always prepared. Each use has to be a sum that a
softmax of a given dtype reads next, `scaled_dot_product_attention`, or an attention function out of transformers' table
that is told `is_causal=False`: without that word some of them look at all places for zeros, and for None only at
earlier ones. Where flash attention would get the mask as it is, the test stays.

A hook on such a layer, and a `forward` that is assigned to the instance, sees the mask of ones in place of None.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import (
    all_given,
    asks_for_none,
    is_literal,
    is_name,
    is_none,
    only_target,
    operands_of,
    same_statement,
    size_asked,
    stores_name,
)
from graphmend_codemod.analysis.scope import dotted, parameter_names, parameters, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.value_flow import given_for
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import before_if, judged, two_paths, under
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import local_names, own_definition
from graphmend_codemod.rules.proofs.masks.all_ones_test import AllOnesTest, of_dtype, question_of
from graphmend_codemod.rules.proofs.masks.mask_products import Products
from graphmend_codemod.rules.proofs.masks.mask_uses import MaskUses
from graphmend_codemod.rules.proofs.masks.prepared_masks import PreparedMask, forms_of
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks, blocks_of

rule = Rule(
    __name__,
    __doc__,
    title="keep a mask that may be all ones",
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="products and sums with the mask are always computed",
        compiled_state=ASKS_CLASSES,
    ),
)

_COMMENT = "# A mask of ones does what None does, so nothing has to be read back."


@rule.on(ast.If, candidate="test", words=("all", "any"))
def mask_or_none(site: Site, node: ast.If) -> Diagnostic | None:
    """`if positions[0] > 0 or (mask is not None and torch.all(mask == 1)): mask = None`."""
    question = question_of(site, node.test)
    if question is None:
        return None
    for_ones, otherwise = (node.body, node.orelse) if question.for_ones else (node.orelse, node.body)
    name = _made_none(for_ones)
    if name is None and not for_ones and not question.for_ones:
        name = _none_before(site, node)
    if name is None:
        return None
    message = f"data-dependent branch: tests whether a mask masks anything: `{speculation.short(node.test)}`"
    if len(for_ones) > 1:
        return Diagnostic(message, declined="the branch does more than drop the mask")
    calls, scope = calls_in(site.source.text), site.evaluator.scope
    function = calls.at(scope.node.lineno)
    if function is not None and is_left_to_eager(calls, function):
        return None

    def judge() -> Diagnostic:
        return judged(message, lambda: _edit_for(site, calls, node, question, name, otherwise))

    # A branch may be asked about twice, where another rule needs to know who else refers to a tensor.
    place = (node.lineno, node.col_offset)
    return calls.remembered("mask or none", (place, scope.module, scope.index), judge)


def _edit_for(
    site: Site, calls: ModuleCalls, node: ast.If, question: AllOnesTest, name: str, otherwise: list[ast.stmt]
) -> Edit:
    """The edit; NotProven with the condition that fails."""
    function = own_definition(site)
    own = same_statement(function.node, node)
    assert isinstance(own, ast.If)
    forms = forms_of(otherwise, name, question.mask) if otherwise else []
    if forms:
        if question.others or question.may_be_none:
            raise NotProven(f"the branch that keeps the mask changes its form: `{speculation.short(forms[0].value)}`")
        return PreparedMask(site, calls, function, name, question.mask, question.dtypes).edit(node, own, forms)
    positions = _positions(question)
    products = Products(site, calls, {}, {})
    uses = MaskUses(site, calls, products)
    if not otherwise:
        _demand_value(function, own, name, question.mask)
    uses.demand(function, name, own)
    if positions is None:
        return edit_in_caller(site, uses, function, question, _COMMENT)
    demand_length(site, uses, function, positions)
    scope = site.evaluator.scope
    for each in products.absent:
        if each in scope.locals | scope.closure:
            raise NotProven(f"the name `{each}` means something else in `{site.function}`")
    asked = [*uses.conditions(), *(f"{each} is None" for each in products.absent)]
    return _edit(site, node, name, question, positions, asked)


def _made_none(block: list[ast.stmt]) -> str | None:
    """The name that the first statement of a block gives None."""
    first = block[0] if block else None
    if not isinstance(first, ast.Assign) or len(first.targets) != 1 or not isinstance(first.targets[0], ast.Name):
        return None
    return first.targets[0].id if is_none(first.value) else None


def _none_before(site: Site, node: ast.If) -> str | None:
    """The only name that a branch assigns, where that held None before."""
    parts = [part for each in node.body for part in walk_in_layers(each) if isinstance(part, ast.Name)]
    names = {part.id for part in parts if not isinstance(part.ctx, ast.Load)}
    bound = Blocks(site.evaluator.scope.node).binding_before(node, name := names.pop()) if len(names) == 1 else None
    return name if bound is not None and is_none(bound.value) else None


def _positions(question: AllOnesTest) -> str | None:
    """`p` where the other reason is `p[0] > 0`."""
    found = [name for each in question.others if (name := _first_of(each)) is not None]
    return found[0] if len(found) == len(question.others) == 1 else None


def _first_of(node: ast.expr) -> str | None:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.comparators[0], ast.Constant):
        return None
    left = node.left
    first = isinstance(left, ast.Subscript) and is_literal(left.slice, 0)
    return left.value.id if first and isinstance(left, ast.Subscript) and isinstance(left.value, ast.Name) else None


def _demand_value(function: Definition, node: ast.If, name: str, mask: str) -> None:
    """NotProven unless the name holds the mask before the test."""
    if name == mask:
        return
    body = function.node.body
    before = body[body.index(node) - 1] if node in body and body.index(node) else None
    plain = is_name(only_target(before), name)
    if not isinstance(before, ast.Assign) or not plain or not is_name(before.value, mask):
        raise NotProven(f"`{name}` may differ from `{mask}`")


def _edit(site: Site, node: ast.If, name: str, question: AllOnesTest, positions: str, classes: list[str]) -> Edit:
    mask = question.mask
    right_dtype = of_dtype(site, mask, question.dtypes)
    of_shape = f"{mask}.shape[1:] == {positions}.shape"
    asked = [site.compiling, *classes, f"isinstance({positions}, {site.torch}.Tensor)"]
    filled = f"{mask}.masked_fill({site.text(question.others[0])}, 1)"
    word = "elif" if site.is_elif(node) else "if"
    if question.may_be_none:
        filled = f"None if {mask} is None else {filled}"
        whole = f"{mask} is None or ({right_dtype} and {of_shape})"
        lines = [f"{mask} is None", "    or (", f"        {right_dtype}", f"        and {of_shape}", "    )"]
        short = site.indentation(1) + len(whole) <= site.line_limit
        inside = whole if short else "\n    ".join(lines)
        header = site.header(word, [*asked, f"({inside})" if short else f"(\n        {inside}\n    )"])
    else:
        header = site.header(word, [*asked, right_dtype, of_shape])
    return before_if(site, node, (under(header, _COMMENT, f"{name} = {filled}"),))


# A mask or None, chosen by a method whose caller alone knows how many positions there are

_UNKNOWN = "cannot infer the size of the tensor it multiplies; the sizes may differ when the mask is None"


def is_left_to_eager(calls: ModuleCalls, function: Definition) -> bool:
    """True where each call of a method stands beside a compile path already."""
    callers = calls.callers(function)
    return bool(callers) and all(_beside_path(caller, call) for caller, call in callers)


def edit_in_caller(site: Site, uses: MaskUses, function: Definition, question: AllOnesTest, comment: str) -> Edit:
    """Two paths around the only call of the method that asks; NotProven with the condition that fails.

    The uses of what the method returns have been followed.
    """
    callers = uses.calls.callers(function)
    if len(callers) != 1 or not _only_chooses(function, question):
        raise NotProven(_UNKNOWN)
    (caller, call) = callers[0]
    statement = blocks_of(uses.calls, caller).statement_of(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        raise NotProven(f"the result of `{short(call)}` is not assigned to a variable")
    asked = {part.id for each in question.others for part in walk_in_layers(each) if isinstance(part, ast.Name)}
    if all(each.node.args.args[:1] and each.node.args.args[0].arg == "self" for each in (caller, function)):
        asked -= {"self"}
    given = function.arguments(call)
    renamed = next((each for each in sorted(asked | {question.mask}) if not is_name(given.get(each), each)), None)
    if renamed is not None:
        raise NotProven(f"`{renamed}` of `{function.qualname}` has another name in `{caller.qualname}`")
    tensor = companion_of(uses, caller, statement)
    if tensor is None:
        raise NotProven(_UNKNOWN)
    _demand_names(site, caller)
    mask, torch = question.mask, site.torch
    conditions = [site.compiling, *uses.conditions(caller), f"isinstance({tensor}, {torch}.Tensor)"]
    known = (
        f"isinstance({mask}, {torch}.Tensor)",
        of_dtype(site, mask, question.dtypes),
        f"{mask}.shape == {tensor}.shape[:2]",
    )
    conditions.append(_none_or(site, mask, known) if question.may_be_none else " and ".join(known))
    others = [f"({site.text(each)})" if isinstance(each, ast.IfExp) else site.text(each) for each in question.others]
    kept = f"None if {' or '.join(others)} else {mask}" if others else mask
    target = site.text(statement.targets[0])
    line = f"{target} = {kept}"
    if site.is_too_long(site.indentation(1) + len(line)):
        line = f"{target} = (\n        {kept}\n    )"
    return two_paths(site, statement, conditions, [comment, line])


def _none_or(site: Site, mask: str, known: tuple[str, ...]) -> str:
    """`(mask is None or (... and ...))`, one a line where that is too long."""
    whole = f"({mask} is None or ({' and '.join(known)}))"
    if not site.is_too_long(site.indentation(1) + len(f"and {whole}")):
        return whole
    lines = "".join(f"\n            {'and ' if number else ''}{each}" for number, each in enumerate(known))
    return f"(\n        {mask} is None\n        or ({lines}\n        )\n    )"


def _only_chooses(function: Definition, question: AllOnesTest) -> bool:
    """True if the method only chooses between the mask and None, and decides from its arguments alone."""
    node = function.node
    body = list(node.body)
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        del body[0]
    if len(body) == 3 and isinstance(body[0], ast.Assign) and is_name(body[0].value, question.mask):
        del body[0]
    if len(body) != 2 or not isinstance(body[0], ast.If) or not isinstance(body[1], ast.Return) or body[0].orelse:
        return False
    test = body[0].test
    last = test.values[-1] if isinstance(test, ast.BoolOp) else test
    if any((each.lineno, each.col_offset) >= (last.lineno, last.col_offset) for each in question.others):
        return False  # what is asked first may say whether the rest can be asked
    names = parameter_names(node)
    asked = {part.id for each in question.others for part in walk_in_layers(each) if isinstance(part, ast.Name)}
    bound = [part for each in body for part in walk_in_layers(each) if isinstance(part, ast.NamedExpr)]
    plain = not (node.decorator_list or node.args.vararg or node.args.kwarg or bound)
    return plain and not isinstance(node, ast.AsyncFunctionDef) and asked | {question.mask} <= names


def _demand_names(site: Site, caller: Definition) -> None:
    """NotProven where the caller has another torch."""
    root = (site.torch or "").partition(".")[0]
    taken = {root, "isinstance"} & local_names(caller.node)
    if taken:
        raise NotProven(f"the name `{min(taken)}` means something else in `{caller.qualname}`")


def _beside_path(caller: Definition, call: ast.Call) -> bool:
    """True for a call in the `else` of `if torch.compiler.is_compiling() and ...`."""
    for node in walk_in_layers(caller.node):
        if not isinstance(node, ast.If):
            continue
        test = node.test
        tests = operands_of(test, ast.And)
        asks = any(isinstance(each, ast.Call) and (dotted(each.func) or "").endswith("is_compiling") for each in tests)
        if asks and any(part is call for each in node.orelse for part in walk_in_layers(each)):
            return True
    return False


# Positions that a function is given: how many there are, by who makes them


def demand_length(site: Site, uses: MaskUses, function: Definition, positions: str) -> None:
    """NotProven unless those who give the positions make as many as `x` has places, where `x` goes with the mask."""
    given = [(each.caller, each.argument) for each in given_for(uses.calls, function, positions)]
    if not given or any(_counted(site, function, positions)):
        given = [(function, ast.Name(positions))]
    for caller, argument in given:
        name = argument.id if isinstance(argument, ast.Name) else ""
        counted = set(_counted(site, caller, name))
        counted |= set(_renamed(caller, counted))
        together = [call for by, call in uses.companions if by is caller]
        if not together or not all(any(_is_one_of(each, counted) for each in all_given(call)) for call in together):
            raise NotProven(f"cannot infer the length of `{positions}` from `{caller.qualname}`")


def companion_of(uses: MaskUses, caller: Definition, statement: ast.stmt) -> str | None:
    """A parameter of the caller that all calls with the mask take first, and that keeps its tensor from there on.

    The calls may take another name of it, and give that their result.
    """
    links = [link for link in uses.links if link.caller is caller]
    first = [link.callee.arguments(link.call).get((link.callee.parameters or [""])[0]) for link in links]
    last = max((link.call.end_lineno or 0 for link in links), default=0)
    names = [part for part in walk_scope(caller.node) if isinstance(part, ast.Name)]
    stored = [part for part in names if not isinstance(part.ctx, ast.Load) and part.lineno <= last]
    for name in (each.arg for each in parameters(caller.node)):
        same = {name, *_renamed(caller, {name})}
        given = [part for part in walk_scope(caller.node) if isinstance(part, ast.Assign) and len(part.targets) == 1]
        kept = {id(part.targets[0]) for part in given if any(part.value is link.call for link in links)}
        kept |= {id(part.targets[0]) for part in given if _is_one_of(_unscaled(part.value), {name})}
        later = any(part.id == name and part.lineno >= statement.lineno for part in stored)
        other = any(part.id in same - {name} and id(part) not in kept for part in stored)
        if first and not later and not other and all(each is not None and _is_one_of(each, same) for each in first):
            return name
    return None


def _is_one_of(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _counted(site: Site, caller: Definition, name: str) -> Iterator[str]:
    """`x` for `if name is None: name = torch.arange(x.shape[1])`, where nothing else binds `name`."""
    bound = [node for node in walk_scope(caller.node) if stores_name(node, name)]
    for node in walk_scope(caller.node):
        given = isinstance(node, ast.If) and asks_for_none(node.test, (ast.Is,)) and is_name(node.test.left, name)
        body = node.body if isinstance(node, ast.If) and given else []
        made = next((part for part in body if isinstance(part, ast.Assign) and bound == part.targets), None)
        if made is not None and isinstance(made.value, ast.Call) and _is_arange(site, made.value):
            yield from _length_of(made.value.args)


def _is_arange(site: Site, call: ast.Call) -> bool:
    plain = all(word.arg in {"device", "dtype"} for word in call.keywords)
    return plain and site.resolve_global(call.func) == "torch.arange"


def _length_of(arguments: list[ast.expr]) -> Iterator[str]:
    """`x` for `x.shape[1]`."""
    asked = size_asked(arguments[0]) if len(arguments) == 1 else None
    if asked is not None and is_literal(asked[1], 1) and isinstance(asked[0], ast.Name):
        yield asked[0].id


def _renamed(caller: Definition, names: set[str]) -> Iterator[str]:
    """Other names for the same, or for a multiple of it."""
    for node in walk_scope(caller.node):
        target = only_target(node)
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and _is_one_of(_unscaled(node.value), names):
            yield target.id


def _unscaled(node: ast.expr) -> ast.expr:
    """`x` for `x * self.scale`."""
    scaled = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Attribute)
    return node.left if scaled and isinstance(node, ast.BinOp) else node
