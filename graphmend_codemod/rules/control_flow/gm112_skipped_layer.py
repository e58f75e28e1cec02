"""skipped-layer (GM112): a random number decides whether a layer runs (LayerDrop).

`if self.training and torch.rand([]) < self.layerdrop: continue` skips a layer at random. The number is a tensor, so the
graph ends at each layer. Where the bound is 0, as in most configurations, GM111 removes the break. Where it is above 0,
the compile path runs every layer and selects with `torch.where` what it gave or what it was given.

That is not what eager mode does, so it is an unsafe fix, which `graphmend fix --unsafe-fixes` applies after a look at
these:

- **Gradients.** The parameters of a skipped layer get a gradient of zeros in place of none, after which optimizers with
  momentum or weight decay change them. (Data-parallel training averages gradients over processes that skip other
  layers, and needs a gradient of each parameter in each step, unless it looks for unused ones.)
- **What a layer does on its way.** Its running statistics, caches and attributes change although it is skipped, its
  hooks run, and numbers are drawn for its dropout, after which all numbers differ from eager mode's. A layer that
  writes into its input changes what is kept. Where numbers overflow in a layer that is skipped, its gradient may be
  NaN, and with it those of what comes before it.
- **Time.** The layer takes the time that skipping it would save.

The distribution of what the model gives is that of eager mode, and the number is drawn once for each layer as in eager
mode. What follows the layer has to be the same in both cases: collections of attentions and other flags are asked for
in the header, and for another configuration the author's code runs, and breaks the graph as before. A statement there
that changes more than names (`kept.append(x)`, `self.ran = n`, `x += layer(x)`) is a reason not to. A layer that gives
a tensor of another shape or dtype than it was given stops the compilation with an AssertionError.

Measured with Inductor and AdamW (12 layers of width 128, 8 x 64 tokens, a bound of 0.1, one thread of a machine with
other load): with the break, where one compiled layer serves all twelve, a training step took 225 ms and the start 3.9
s; with all layers run and selected 260 ms and 15.4 s. So for speed alone the break is the better on a CPU; one graph is
for `fullgraph=True` and for compilers that need it. Under `torch.cond` dropout inside of the layer would be
drawn anew for the gradient, which is then that of another function (torch 2.13).
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_within
from graphmend_codemod.core.findings import Edit, Original, Safety
from graphmend_codemod.rules.framework.edits import beside, judged
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.deciding_operands import Decision, decision
from graphmend_codemod.rules.proofs.select import skipped_layer
from graphmend_codemod.rules.proofs.select.skipped_layer import Draw, Ways, Written

_COMMENT = "# Not skipped by a random number when compiled: what the layer gives is selected or not."

rule = Rule(
    __name__,
    __doc__,
    title="select a layer's result instead of skipping the layer by a random number",
    safety=Safety.UNSAFE,
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="a layer that would be skipped runs, and its gradient is computed",
        compiled_exceptions="those of a skipped layer are raised; AssertionError where a layer changes shape or dtype",
        compiled_state="running statistics, caches and attributes of a skipped layer change",
    ),
)


@rule.on(ast.For, words=("rand", "random", "uniform", "rand_like"), candidate="test")
def skipped(site: Site, node: ast.For) -> Diagnostic | None:
    """`for layer in self.layers: if torch.rand([]) < self.layerdrop: continue`."""
    drawn = [each for each in skipped_layer.draws_in(site, node.body) if not _waits(site, node, each)]
    if len(drawn) != 1:
        return None
    message = f"skips a layer by a random number: `{speculation.short(drawn[0].compared)}`"
    return judged(message, lambda: _edit(site, node, drawn[0]))._replace(node=drawn[0].compared)


def _waits(site: Site, loop: ast.For, drawn: Draw) -> bool:
    """True where a test asks nothing of the bound before the number: another rule is about to write that."""
    for statement in ast.walk(loop):
        if isinstance(statement, (ast.If, ast.Assign)):
            test = statement.test if isinstance(statement, ast.If) else statement.value
            here = site.at(statement)
            if here is not None and is_within(drawn.compared, test):
                return isinstance(decision(here, test), Decision)
    return True


def _edit(site: Site, loop: ast.For, drawn: Draw) -> Edit:
    if not skipped_layer.is_of_torch(site, drawn):
        raise NotProven("the number is drawn outside of torch; manually draw it with `torch.rand([])`")
    found = skipped_layer.ways(site, loop, drawn)
    first, last = found.statements[0], found.statements[-1]
    here = site.reached(first, "the code")
    span = here.span(first).through(here.span(last))
    header = here.header(
        "elif" if here.is_elif(first) else "if", [here.compiling, *found.asked, *_tensors(here, found)]
    )
    lines = _path(here, found)
    path = [part for line in lines for part in ("\n    ", line)]
    original: tuple[str | Original, ...] = ("\nelse:\n    ", Original(span, 1))
    if len(found.statements) == 1 and isinstance(first, ast.If):
        original = ("\nel", Original(span))
    return beside(here, span, (header, *path, *original))


def _tensors(site: Site, found: Ways) -> list[str]:
    """What has to be a tensor for the select. NotProven where it is certainly none."""
    asked = []
    for name in found.kept:
        value = site.place.env.get(name)
        if value is not None and value.is_python:
            raise NotProven(f"`{name}` is a Python value, which cannot be selected")
        if value is None or not value.is_tensor or value.hint:
            asked.append(f"isinstance({name}, {site.torch}.Tensor)")
    return asked


def _path(site: Site, found: Ways) -> list[str | Original]:
    """The lines of the compile path."""
    before = {name: site.free_name(f"{name}_before") for name in found.kept}
    mark = site.free_name("skipped" if found.outcome else "runs")
    lines: list[str | Original] = [_COMMENT, *(f"{before[name]} = {name}" for name in found.kept)]
    lines += [_own(site, each) for each in found.first]
    shape = "" if skipped_layer.is_scalar(site, found.drawn) else ".reshape(())"
    lines.append(f"{mark} = ({_compared(site, found.drawn)}).to({found.kept[0]}.device){shape}")
    lines += [_own(site, each) for each in found.run]
    for name in found.kept:
        old = before[name]
        arms = (old, name) if found.outcome else (name, old)
        lines += [
            f"assert {name}.shape == {old}.shape",
            f"assert {name}.dtype == {old}.dtype",
            site.call(f"{name} = {site.torch}.where(", [mark, *arms], deeper=1).replace("\n", "\n    "),
        ]
    return lines


def _own(site: Site, written: Written) -> Original:
    return site.original(written.statement, 1 - written.level)


def _compared(site: Site, drawn: Draw) -> str:
    """The comparison, with a tensor in the place of its element."""
    sign = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}[type(drawn.compared.ops[0])]
    draw, number = site.text(drawn.draw), site.text(drawn.number)
    return f"{draw} {sign} {number}" if drawn.left else f"{number} {sign} {draw}"
