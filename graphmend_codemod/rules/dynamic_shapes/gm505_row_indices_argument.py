"""row-indices-argument (GM505): row indices computed from a mask are passed to a function that works on these rows.

`rows = torch.where(mask)[0]` has as many entries as the data says, and with it all that is computed in
`if len(rows) > 0: y[rows] = f(y[rows], x[rows])`. Under `torch.compile` the function gets a mask over the rows instead:
it computes all rows, and those outside the mask keep their values. Two edits, each right without the other: the
function learns to take a mask, then its callers learn to give one. Eager mode runs the original text, word for word.

Every row has to be treated by itself: layers that do, elementwise operations, and changes of the other dimensions.
Where batch norm or dropout take part, the compile path is for evaluation alone. It computes all rows, so it multiplies
the work of the branch by rows / chosen rows. A mask of several dimensions may choose a row more than once, and eager
mode adds a gradient for each time: with gradients, only a mask of one dimension is handed down. Where a mask does not
have one entry for each row, numbers are taken again. So they are where a layer has another class than the constructor
gives it: that may not know masks, or let rows depend on each other.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.scope import FunctionNode, dotted, parameters, walk_in_layers, walk_scope
from graphmend_codemod.core.findings import Edit, Replacement, Safety
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, Clean, Contract, Cost, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, Link
from graphmend_codemod.rules.proofs.proven import tensor_facts
from graphmend_codemod.rules.proofs.rowwise.dense_rows import about_layers, text_for_all_rows
from graphmend_codemod.rules.proofs.rowwise.row_values import NotRowwise
from graphmend_codemod.rules.proofs.rowwise.rowblocks import Blocks, Layers, bound_names
from graphmend_codemod.rules.proofs.rowwise.selectors import where_of

_CALLEE = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.long = nn.Linear(4, 4)

    def forward(self, x, rows):
        y = self.proj(x)
        ...
        return y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor, longer: torch.Tensor):
        if torch.compiler.is_compiling():
            # A mask of the rows: how many there are depends on the data.
            rows = longer.reshape(longer.shape[0], -1).any(1)
        else:
            rows = torch.where(longer)[0]
        return self.part(x, rows)
"""
_CALLER = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.long = nn.Linear(4, 4)

    def forward(self, x, rows):
        y = self.proj(x)
        if (
            torch.compiler.is_compiling()
            and isinstance(rows, torch.Tensor)
            and rows.dtype == torch.bool
            and not (rows.shape == x.shape[:1] == y.shape[:1] and type(self.long) is nn.Linear)
        ):
            # A mask that cannot be taken here: numbers, as in eager mode.
            rows = torch.where(rows)[0]
        # With a mask every row is computed, and those outside it keep their values.
        if torch.compiler.is_compiling() and isinstance(rows, torch.Tensor) and rows.dtype == torch.bool:
            part = self.long(x)
            y = torch.where(rows.reshape(-1, *[1] * (y.dim() - 1)), part.to(y.dtype), y)
        elif len(rows) > 0:
            part = self.long(x[rows])
            y[rows] = part
        return y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor, longer: torch.Tensor):
        ...
        return self.part(x, rows)
"""
_MASKS = ("[True, False, True]", "[False] * 3", "[[True], [True], [False]]")
_INPUTS = tuple(f"torch.ones(3, 4), torch.tensor({mask})" for mask in _MASKS)

rule = Rule(
    code="GM505",
    slug="row-indices-argument",
    title="pass a mask instead of row indices",
    documentation=__doc__,
    safety=Safety.UNSAFE,
    contract=Contract(
        cost=Cost.MULTIPLIED,
        cost_note="the branch computes all rows: rows / selected rows times the work",
        compiled_state=ASKS_CLASSES,
    ),
    examples=(
        Example(
            before="""
            if len(rows) > 0:
                part = self.long(x[rows])
                y[rows] = part
            """,
            after="""
            if (
                torch.compiler.is_compiling()
                and isinstance(rows, torch.Tensor)
                and rows.dtype == torch.bool
                and not (
                    rows.shape == x.shape[:1] == y.shape[:1]
                    and type(self.long) is nn.Linear
                )
            ):
                # A mask that cannot be taken here: numbers, as in eager mode.
                rows = torch.where(rows)[0]
            # With a mask every row is computed, and those outside it keep their values.
            if (
                torch.compiler.is_compiling()
                and isinstance(rows, torch.Tensor)
                and rows.dtype == torch.bool
            ):
                part = self.long(x)
                y = torch.where(
                    rows.reshape(-1, *[1] * (y.dim() - 1)), part.to(y.dtype), y
                )
            elif len(rows) > 0:
                part = self.long(x[rows])
                y[rows] = part
            """,
            setup=_CALLEE,
            inputs=_INPUTS,
        ),
        Example(
            before="""
            rows = torch.where(longer)[0]
            """,
            after="""
            if (
                torch.compiler.is_compiling()
                and isinstance(longer, torch.Tensor)
                and longer.dtype == torch.bool
                and type(self.part) is Part
                and (longer.dim() == 1 or not torch.is_grad_enabled())
            ):
                # A mask of the rows: how many there are depends on the data.
                rows = longer if longer.dim() == 1 else longer.flatten(1).any(1)
            else:
                rows = torch.where(longer)[0]
            """,
            setup=_CALLER,
            inputs=_INPUTS,
        ),
        Declined(
            source="""
            if len(rows) > 0:
                part = self.long(x[rows]).softmax(0)
                y[rows] = part
            """,
            because="may make rows depend on each other",
            setup=_CALLEE,
        ),
        Declined(
            source="""
            kept = [y]
            if len(rows) > 0:
                part = self.long(x[rows])
                y[rows] = part
            y = y + kept[0]
            """,
            because="may write into memory that another tensor shares",
            setup=_CALLEE,
        ),
        Clean(
            source="""
            if len(rows) > 0:
                y = y + 1
            """,
            setup=_CALLEE,
        ),
    ),
)

_TAKES = "# With a mask every row is computed, and those outside it keep their values."
_NUMBERS = "# A mask that cannot be taken here: numbers, as in eager mode."
_GIVES = "# A mask of the rows: how many there are depends on the data."


@rule.on(ast.If, words=("len",), here=True)
def branch_on_rows(site: Site, node: ast.If) -> Verdict | None:
    """`if len(rows) > 0:` for an argument `rows` that chooses rows in the branch."""
    name = _counted(node.test)
    function = site.evaluator.scope.node
    if name is None or node.orelse or name not in {each.arg for each in parameters(function)}:
        return None
    if not any(isinstance(part, ast.Subscript) and _first(part) == name for part in walk_in_layers(node)):
        return None
    calls = calls_in(site.source.text)
    sites = calls.sites((site.function, function.lineno))
    if not any(name in given and _chosen_rows(site, calls, by, given[name]) for by, given in sites):
        return None
    message = f"selects rows by data (data-dependent shape): `{speculation.short(node.test)}`"
    if site.torch is None:
        return Verdict(message, declined=name_taken())
    try:
        return Verdict(message, edit=_dense(site, node, name, Layers(site, calls)))
    except (NotRowwise, NotProven) as reason:
        return Verdict(message, declined=str(reason))


def _counted(test: ast.expr) -> str | None:
    """`rows` for `len(rows) > 0`."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Gt, ast.NotEq))):
        return None
    left, right = test.left, test.comparators[0]
    if not (isinstance(right, ast.Constant) and right.value == 0):
        return None
    if isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "len" and len(left.args) == 1:
        return left.args[0].id if isinstance(left.args[0], ast.Name) else None
    return None


def _first(node: ast.Subscript) -> str | None:
    first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    return first.id if isinstance(first, ast.Name) else None


def _chosen_rows(site: Site, calls: ModuleCalls, by: tuple[str, int], given: ast.expr) -> bool:
    """True where a caller gives `torch.where(mask)[0]`."""
    if not isinstance(given, ast.Name):
        return False
    for node in walk_scope(calls.definitions[by].node):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        bound = isinstance(target, ast.Name) and target.id == given.id
        if bound and isinstance(node, ast.Assign) and _mask(site, node.value) is not None:
            return True
    return False


def _mask(site: Site, node: ast.expr) -> ast.expr | None:
    """`mask` for `torch.where(mask)[0]` and `torch.nonzero(mask, as_tuple=True)[0]`."""
    found = where_of(site, node) if isinstance(node, ast.Subscript) else None
    return found[0] if found is not None and found[1] == 0 else None


def _dense(site: Site, node: ast.If, name: str, layers: Layers) -> Edit:
    function = site.evaluator.scope.node
    owner = site.function.rpartition(".")[0]
    blocks = Blocks(layers, owner, function, name)
    for statement in node.body:
        blocks.statement(statement)
    if len(blocks.writes) != 1 or node.body[-1] is not _holder(node.body, blocks.writes[0]):
        raise NotRowwise("the rows are not written exactly once, at the end of the branch")
    target = blocks.writes[0].value
    if not isinstance(target, ast.Name) or not _is_own(site, node, target.id):
        raise NotRowwise(f"`{speculation.short(blocks.writes[0])}` may write into memory that another tensor shares")
    for bound in bound_names(node.body):
        if site.live_after(bound):
            raise NotRowwise(f"`{bound}` is read after the branch")
    if site.is_elif(node):
        raise NotRowwise("the branch is an `elif`")
    is_mask = [f"isinstance({name}, {site.torch}.Tensor)", f"{name}.dtype == {site.torch}.bool"]
    conditions = [_same_rows(site, node, blocks, name), *about_layers(site, layers, owner, function)]
    if layers.in_evaluation:
        conditions.append("not self.training")
    text = text_for_all_rows(site, node, blocks, target.id, name)
    other = site.header("if", [site.compiling, *is_mask, site.negated(conditions)])
    numbers = f"{other}\n    {_NUMBERS}\n    {name} = {site.torch}.where({name})[0]\n"
    header = f"{numbers}{_TAKES}\n{site.header('if', [site.compiling, *is_mask])}\n    "
    parts = (header, text, "\nel", site.original(node))
    return Edit((Replacement(site.span(node), parts),), imports=site.imports)


def _same_rows(site: Site, node: ast.If, blocks: Blocks, name: str) -> str:
    """The condition that the mask has an element for each row: numbers of rows that are not there raise."""
    inside = bound_names(node.body)
    tensors = [each.value for each in (*blocks.reads, *blocks.writes)]
    for each in tensors:
        root = (dotted(each) or "").partition(".")[0]
        if not root or root in inside:
            raise NotRowwise(f"cannot infer the number of rows of `{speculation.short(each)}` before the branch")
    shapes = dict.fromkeys(f"{site.text(each)}.shape[:1]" for each in tensors)
    return " == ".join([f"{name}.shape", *shapes])


def _holder(body: Sequence[ast.stmt], part: ast.AST) -> ast.stmt | None:
    return next((statement for statement in body if any(each is part for each in walk_in_layers(statement))), None)


def _is_own(site: Site, node: ast.If, name: str) -> bool:
    """True when the tensor that is written was made here and nothing but a local refers to it."""
    return name not in bound_names(node.body) and site.sole_owner(name)


@rule.on(ast.Assign, words=("where", "nonzero"), here=True)
def rows_of_mask(site: Site, node: ast.Assign) -> Verdict | None:
    """`rows = torch.where(mask)[0]` where all that gets `rows` takes a mask as well."""
    mask = _mask(site, node.value)
    target = node.targets[0]
    if mask is None or len(node.targets) != 1 or not isinstance(target, ast.Name):
        return None
    function = site.evaluator.scope.node
    caller = Definition(site.function, function, site.function.rpartition(".")[0])
    uses = [each for each in walk_scope(function) if isinstance(each, ast.Name) and each.id == target.id]
    reads = {id(each) for each in uses if isinstance(each.ctx, ast.Load)}
    calls = calls_in(site.source.text)
    taken: list[tuple[FunctionNode, str]] = []
    followed: list[tuple[ast.Call, Definition]] = []
    for call in walk_scope(function):
        callee = calls.callee(caller, call) if isinstance(call, ast.Call) else None
        if callee is not None and isinstance(call, ast.Call):
            for parameter, given in callee.arguments(call).items():
                if id(given) in reads:
                    reads.discard(id(given))
                    taken.append((callee.node, parameter))
                    followed.append((call, callee))
    tests = [_mask_test(each, parameter) for each, parameter in taken]
    if reads or not tests or None in tests:
        return None
    message = f"converts a mask to row indices (data-dependent shape): `{speculation.short(node.value)}`"
    if site.torch is None:
        return Verdict(message, declined=name_taken())
    compared = mask.left if isinstance(mask, ast.Compare) else mask
    constant = isinstance(mask, ast.Name) or (
        isinstance(mask, ast.Compare) and all(isinstance(each, ast.Constant) for each in mask.comparators)
    )
    if not isinstance(compared, ast.Name) or not constant:
        return Verdict(message, declined=f"`{speculation.short(mask)}` would be computed twice")
    subject = compared.id
    certain = CertainCalls(site, calls)
    try:
        for call, callee in followed:
            certain.follow(certain.start(), Link(caller, call, callee))
        conditions = [site.compiling, *_about_mask(site, mask, subject), *certain.conditions()]
    except NotProven as unsure:
        return Verdict(message, declined=str(unsure))
    # A mask of several dimensions chooses a row several times, and eager mode adds a gradient for each.
    conditions.append(f"({subject}.dim() == 1 or not {site.torch}.is_grad_enabled())")
    whole = site.operand(mask)
    choice = [whole, f"if {subject}.dim() == 1", f"else {whole}.flatten(1).any(1)"]
    rows = " ".join(choice)
    if site.is_too_long(site.indentation(1) + len(f"{target.id} = {rows}")):
        rows = "(" + "".join(f"\n        {each}" for each in choice) + "\n    )"
    if any(test is not None and "not self.training" in test for test in tests):
        if site.evaluator.scope.self_name != "self":
            return Verdict(message, declined="cannot infer whether the model is in training mode")
        conditions.append("not self.training")
    path = f"{site.header('if', conditions)}\n    {_GIVES}\n    {target.id} = {rows}\nelse:\n    "
    parts = (path, site.original(node, 1))
    return Verdict(message, edit=Edit((Replacement(site.span(node), parts),), imports=site.imports))


def _about_mask(site: Site, mask: ast.expr, subject: str) -> list[str]:
    """What must hold for the mask to be a bool tensor with rows: numbers choose where they are not zero."""
    facts = dict.fromkeys([f"isinstance({subject}, {site.torch}.Tensor)", *tensor_facts(site, mask)])
    if isinstance(mask, ast.Name):
        facts[f"{subject}.dtype == {site.torch}.bool"] = None
    return list(facts)


def _mask_test(function: FunctionNode, parameter: str) -> str | None:
    """The tests of a function's path for a mask; None if it has none, or uses the argument in another place."""
    inside: set[int] = set()
    found = None
    for node in walk_scope(function):
        if isinstance(node, ast.If) and f"{parameter}.dtype == torch.bool" in (test := ast.unparse(node.test)):
            inside |= {id(part) for part in walk_in_layers(node)}
            found = f"{found or ''} {test}"
    reads = [each for each in walk_scope(function) if isinstance(each, ast.Name) and each.id == parameter]
    return found if all(id(each) in inside for each in reads) else None
