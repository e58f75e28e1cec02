"""flag-chooses-code (GM106): a branch on a flag that was read from a tensor, one or more calls above.

`flag = mask.any().item()` breaks the graph where it is read, and what it is needed for is an `if flag:` further down.
Under `torch.compile` the flag stays a 0-dim tensor (GM403 writes that), and the function that decides by it hands it to
`torch.cond`, which holds both forms of the function and runs one of them. Eager mode never gets there: the flag is a
Python bool in it, and all that the function does stays as it was.

What cannot be captured under `torch.cond` is an error, not a graph break. So the function, and all of the module that
it calls, may only use operations of torch whose sizes do not depend on data, and layers of torch that change nothing
when they are called. It must not write into what it gets, and assertions in it must tell the sizes of what it returns.
Nothing that is only done for one value of the flag may change the dtype of the result. Rows that are packed by a mask
are one exception, see GM506: the fix is unsafe there. Results that have another size or number for each value, such as
attention weights on request, keep the flag a Python bool.

So do gradients and autocast, where the graph breaks as before: parameters that only the other form has would get a
gradient of zeros where eager mode leaves None, and autocast may give the two forms different dtypes.

All floats that are read there must be constants to the compiler: `torch.cond` takes tensors and integers from outside,
no floats. With `dynamic=True` a float of a module, such as the `p` of a dropout or the `eps` of a norm, is an input of
the graph, and so is one that was another number when the code was compiled before; torch 2.13 fails there
(`lift_tracked_freevar_to_input should not be called on root SubgraphTracer`). So the compile path asks, by
`torch.fx.experimental.symbolic_shapes.has_static_value`, whether floats in general (`torch.pi` is one) and all that
this code reads are constants. Where they are not, the flag is a Python bool and the graph breaks as before. The fix is
unsafe where the function has no words for something that may be a float. Layers of another class than the constructor
gives, and subclasses, keep the flag a Python bool. A hook that is registered in another project is not known: what
cannot be captured in it is an error as well.

Both forms are compiled. With dynamic sizes Inductor takes two to three times as long as with static ones, most of it
in simplifying the formulas of indices for C++ kernels: an encoder of two small layers took 85 CPU seconds for its
first length and 183 for all others together. It is the sizes, not `torch.cond`: with the flag a constant it is the
same (GM601 tells what is done about it). Where only few lengths occur, `dynamic=False` may be faster.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.scope import walk_in_layers, walk_scope
from graphmend_codemod.core.findings import Edit, Replacement, Safety
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, Clean, Contract, Cost, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls
from graphmend_codemod.rules.proofs.cond import constant_floats
from graphmend_codemod.rules.proofs.cond.cond_flag import Choice, choices, is_dispatched

_SETUP = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, masked=None):
        ...
        assert y.size() == x.size()
        return y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor):
        mask = x > 3
        if torch.compiler.is_compiling():
            masked = mask.any()
        else:
            masked = mask.any().item()
        return self.part(x, masked)
"""

rule = Rule(
    code="GM106",
    slug="flag-chooses-code",
    title="branch on a flag with torch.cond",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="both forms are compiled, and one of them runs",
        compiled_exceptions="an input that one of both forms does not take raises one, whichever runs",
        compiled_state=ASKS_CLASSES,
    ),
    examples=(
        Example(
            before="""
            y = x * 2
            if masked:
                y = self.linear(y)
            """,
            after="""
            if (
                torch.compiler.is_compiling()
                and isinstance(masked, torch.Tensor)
                and type(self) is Part
                and type(self.linear) is nn.Linear
                and _floats_are_constant()
            ):
                # The graph holds both forms, and one of them runs.
                def forward_if(masked):
                    \"\"\"What `forward` returns where `masked` is True or False.\"\"\"
                    return self.forward(x, masked)

                return torch.cond(masked, lambda: forward_if(True), lambda: forward_if(False))
            y = x * 2
            if masked:
                y = self.linear(y)
            """,
            setup=_SETUP,
            inputs=("torch.ones(2, 4)", "torch.ones(2, 4) * 4"),
        ),
        Declined(
            source="""
            y = x * 2
            if masked:
                y = y[y > 1]
            """,
            because="may select rows by data",
            setup=_SETUP,
        ),
        Clean(
            source="""
            y = x * 2
            if masked is not None:
                y = self.linear(y)
            """,
            setup=_SETUP.replace("masked = mask.any().item()", "masked = mask.any()"),
        ),
    ),
)

_COMMENT = "# The graph holds both forms, and one of them runs."


@rule.on(ast.If, candidate="test")
def choosing_branch(site: Site, node: ast.If) -> Verdict | None:
    """`if flag:` in the function that decides by it."""
    choice = _choice(site)
    if choice is None or is_dispatched(choice) or node is not _first(site, choice):
        return None
    message = (
        f"data-dependent branch on a flag that `{choice.reader.qualname}` reads from a tensor: `{choice.parameter}`"
    )
    if site.torch is None:
        return Verdict(message, declined=name_taken())
    if choice.reason is not None:
        return Verdict(message, declined=choice.reason)
    if choice.unknown is not None:
        message += f"; unsafe, since {choice.unknown}"
    certain = CertainCalls(site, calls_in(site.source.text))
    try:
        # An heir whose `forward` calls this one would run once more inside.
        certain.demand_class(certain.start(), choice.decider.owner)
        certain.demand_all_below(certain.start()._replace(exact=True), choice.decider)
    except NotProven as unsure:
        return Verdict(message, declined=str(unsure))
    return Verdict(message, safety=choice.safety, edit=_edit(site, choice, certain.conditions()))


def _choice(site: Site) -> Choice | None:
    """The choice that the function of this site makes."""
    every = choices(site.source.text)
    if not every:
        return None
    line = site.evaluator.scope.node.lineno
    found = (each for each in every if each.decider.qualname == site.function)
    return next((each for each in found if each.decider.node.lineno == line), None)


def _first(site: Site, choice: Choice) -> ast.AST | None:
    """The first `if` of the function that tests the flag."""
    tests = [
        node
        for node in walk_scope(site.evaluator.scope.node)
        if isinstance(node, ast.If)
        if any(isinstance(part, ast.Name) and part.id == choice.parameter for part in walk_in_layers(node.test))
    ]
    return min(tests, key=lambda node: node.lineno, default=None)


def _edit(site: Site, choice: Choice, classes: list[str]) -> Edit:
    function, flag = site.evaluator.scope.node, choice.parameter
    own = function.args.args[0].arg
    name = site.free_name(f"{function.name}_if")
    call = site.call(f"return {own}.{function.name}(", choice.decider.parameters, deeper=2)
    documentation = f'"""What `{function.name}` returns where `{flag}` is True or False."""'
    first = _first_statement(function)
    # All that is written stands at the depth of the function's body, wherever the `if` is.
    conditions = [
        site.compiling,
        f"isinstance({flag}, {site.torch}.Tensor)",
        *classes,
        f"{constant_floats.NAME}({', '.join(choice.floats)})",
    ]
    header = f"if {' and '.join(conditions)}:"
    if site.indentation() + len(header) > site.line_limit:
        conditions[-1] = site.call(f"and {constant_floats.NAME}(", list(choice.floats), deeper=1).removeprefix("and ")
        header = "if (\n    " + "\n    and ".join(conditions) + "\n):"
    lines = [
        *header.split("\n"),
        f"    {_COMMENT}",
        f"    def {name}({flag}):",
        f"        {documentation}",
        f"        {call}",
        "",
        f"    return {site.torch}.cond({flag}, lambda: {name}(True), lambda: {name}(False))",
        "",
    ]
    changed = Replacement(site.span(first), ("\n".join(lines), site.original(first)))
    asks = constant_floats.helper(site, choice.decider.node.lineno)
    return Edit((changed,), imports=site.imports, helpers=(asks,))


def _first_statement(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1] if documented else first
