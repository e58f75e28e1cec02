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
for `fullgraph=True` and for compilers that need it.

With `--opaque`, GM801 writes an operator that runs the layer or skips it, where it can: its results, random numbers and
gradients are those of eager mode, but for zeros in place of none. `torch.cond`, with the layer in one arm, is not
written: its gradient computes the arm again and draws the numbers for dropout anew, so that it is the gradient of
another function (torch 2.13, with the backends `eager`, `aot_eager` and `inductor`; the results are right).
"""

from __future__ import annotations

import ast

from graphmend_codemod.core.findings import Edit, Original, Safety
from graphmend_codemod.core.settings import selects
from graphmend_codemod.rules.framework.edits import judged
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.select import layer_draws, skipped_layer
from graphmend_codemod.rules.proofs.select.layer_draws import Draw
from graphmend_codemod.rules.proofs.select.skipped_layer import Ways, Written

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
    drawn = layer_draws.drawn_in(site, node)
    outlines = site.settings.opaque and selects(site.settings, "GM801", site.summary.path)
    if drawn is None or (outlines and _is_operator(site, node, drawn)):
        return None
    found = judged(layer_draws.message_of(drawn), lambda: _edit(site, node, drawn))
    return found._replace(node=drawn.compared)


def _is_operator(site: Site, loop: ast.For, drawn: Draw) -> bool:
    """True where GM801 writes an operator, which does what eager mode does."""
    from graphmend_codemod.rules.proofs.outlining.statements import skipped_layers  # a commit hook waits for it

    try:
        skipped_layers.edit(site, loop, drawn)
    except NotProven:
        return False
    return True


def _edit(site: Site, loop: ast.For, drawn: Draw) -> Edit:
    if not layer_draws.is_of_torch(site, drawn):
        raise NotProven("the number is drawn outside of torch; manually draw it with `torch.rand([])`")
    found = skipped_layer.ways(site, loop, drawn)
    here = site.reached(found.statements[0], "the code")
    asked = [here.compiling, *found.asked, *skipped_layer.tensors_asked(here, found)]
    return skipped_layer.path_beside(here, found, asked, _path(here, found))


def _path(site: Site, found: Ways) -> list[str | Original]:
    """The lines of the compile path."""
    before = {name: site.free_name(f"{name}_before") for name in found.kept}
    mark = site.free_name("skipped" if found.outcome else "runs")
    lines: list[str | Original] = [_COMMENT, *(f"{before[name]} = {name}" for name in found.kept)]
    lines += [_own(site, each) for each in found.first]
    compared = layer_draws.compared_text(site, found.drawn, site.text(found.drawn.number))
    shape = "" if layer_draws.is_scalar(site, found.drawn) else ".reshape(())"
    lines.append(f"{mark} = ({compared}).to({found.kept[0]}.device){shape}")
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
