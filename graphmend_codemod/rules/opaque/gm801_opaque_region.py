"""opaque-region (GM801): code that only an opaque operator takes into the graph.

Some code has no traceable form: recurrent layers, loops whose number of steps depends on data, calls that leave torch.
What goes into it and what comes out are tensors of known shapes all the same, so torch.compile can call it as a whole,
as a custom operator (`torch.library`) with the author's own code in it.

That is the last resort, for sites that no other rule fixes, and it is not the same as a graph of plain operators: the
compiler does not look inside, fuses nothing with it, and where gradients flow the code runs once more to get them. So
these fixes are a kind of their own, *opaque*, which only `graphmend fix --opaque` or the setting `opaque = true`
applies, and which is counted apart everywhere.

**Recurrent layers.** `self.lstm(x)` and `self.lstm.num_layers` get a compile path, in which an operator runs the layer
on what it is given, with its parameters as inputs. Compiled graphs hold these parameters themselves: after one is
replaced by another (not after it changed in place, as optimizers and `load_state_dict` do), call
`torch.compiler.reset()`. Packed sequences, autocast, `torch.export`, subclasses of tensors and layers of other classes
are told apart while tracing, and break the graph as before.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.reasons import name_taken
from graphmend_codemod.rules.framework.rule import Clean, Contract, Cost, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining import recurrent
from graphmend_codemod.rules.proofs.outlining.custom_op import NotAnOperator

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x: torch.Tensor):
        ...
        return x * 2
"""

rule = Rule(
    code="GM801",
    slug="opaque-region",
    title="run code that cannot be traced as one opaque operator under torch.compile",
    documentation=__doc__,
    safety=Safety.OPAQUE,
    contract=Contract(
        cost=Cost.OUTLINED,
        cost_note="the code runs as in eager mode, once more for a gradient",
        compiled_state="kept; torch.compile notes a number for each module among the globals of the file",
    ),
    examples=(
        Example(
            before="""
            x = self.lstm(x)[0]
            """,
            after="""
            if (
                torch.compiler.is_dynamo_compiling()
                and _fits_recurrent(self, "lstm", torch.nn.LSTM, x)
            ):
                # torch.compile does not trace recurrent layers: it calls this one as one operator.
                x = _lstm_operator(self, x)[0]
            else:
                x = self.lstm(x)[0]
            """,
            setup=_SETUP,
            inputs=("torch.randn(2, 3, 4)", "torch.randn(3, 4)"),
        ),
        Declined(
            source="""
            packed = nn.utils.rnn.pack_padded_sequence(x, [3, 2], batch_first=True)
            packed, _ = self.lstm(packed)
            """,
            because="a packed sequence",
            setup=_SETUP,
        ),
        Clean(
            source="""
            x = nn.functional.relu(x)
            """,
            setup=_SETUP,
        ),
    ),
)

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


@rule.on(*_SIMPLE)
def recurrent_layer(site: Site, statement: ast.stmt) -> Verdict | None:
    """`x = self.lstm(x)[0]`."""
    layers = recurrent.layers_in(site, statement)
    if not layers:
        return None
    message = f"calls or reads a recurrent layer, which Dynamo does not trace: `{speculation.short(layers[0])}`"
    if site.torch is None:
        return Verdict(message, declined=name_taken())
    try:
        return Verdict(message, edit=recurrent.edit(site, statement, layers))
    except NotAnOperator as reason:
        return Verdict(message, declined=str(reason))
