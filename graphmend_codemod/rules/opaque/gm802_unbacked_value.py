"""unbacked-value (GM802): a number or a size that only the data tells, which the graph can carry as a symbol.

`x.item()`, `int(x.max())`, `x[mask]` and `x.nonzero()` break the graph, for Dynamo does not by default put into it what
has a value or a size that only the data tells. Two small operators of the module do: one gives the number, the other
the places that are not zero, and torch.compile has an unbacked symbol for what they give. `repeat_interleave` gets one
for its total, where the counts have as many elements as what is repeated; `unique`, `unique_consecutive` and `bincount`
get one that calls them, unless a gradient is needed, which eager mode has none for. torchvision's `nms` and
`batched_nms` get one that calls them, for how many boxes they keep. The graph goes on behind them. The device is waited
for as before, and eager mode runs the author's statement.

A size that only seems to be a tensor, by what callers give or a function returns (`torch.arange(longest)`, `x[:, :n]`,
`torch.zeros(b, n)`), is written too: what it is decides while the code is traced, and a number of Python stays one. A
tensor that is read twice gives one symbol. Whatever else is computed with such a tensor stays a tensor.

A list of such numbers, or of such rows, may be gone through and asked for its length, and an assertion with a constant
message, or none, may ask about the numbers: Dynamo makes it one of the graph, whose failure is another exception.
`x.new(lengths)` asks each number of the list for its value, and is `x.new_tensor(lengths)` there.

Where a branch needs the value, and only behind a test that Python decides (`if self.training:`, `limit is not None and
len(rows) > limit`), the header asks for the opposite of that test; otherwise nothing is written.

These operators are *opaque*, so only `graphmend fix --opaque` or the setting `opaque = true` writes them. What comes
later may ask for the number while it is traced: then the graph breaks there, or the backend refuses to compile. Where
TorchScript compiles the code as well, the header says so and TorchScript passes the path by. The operators also take
what PyTorch does not promise to keep: how a fake tensor gets such a size. `graphmend evaluate` compiles the model and
says what holds. Inductor computes with 64 bits: a sum or product of such numbers beyond them wraps, where Python's
integers grow. A number beside other indices (`x[0, k]`), and where a slice that is written ends (`x[:, :k] = 0`), is
refused by Dynamo or Inductor, and breaks the graph as before.

`int(x)` takes any number; where nothing uses it, the graph leaves it out, and the exception that eager mode raises for
NaN and infinity as well. A number with a fraction is a symbol only where it is kept, and nothing else:
`stats["loss"] = loss.item()`, an attribute that the module does not read, twice the number. The graph has four whole
numbers for it, of which the symbol is made, exactly (but for the sign of a zero). That was tried with torch 2.13; for
an older one nothing is written. A caller that tests such a number of a returned dict, or makes a size of it, is
refused while it is compiled. Elsewhere numbers with a fraction, and booleans everywhere, break the graph as before:
where the source tells that a tensor holds them nothing is written, and otherwise the header asks for its dtype if it
can.

Some operators ask how many rows there are, such as `torch.logsumexp`, `chunk` and `roll`: where rows that a mask
chooses go into one, nothing is written, nor where they are listed (`tolist`), which ends compiled code with an error,
in the function or one that it calls. Of others the gradient alone asks (`cumsum`, `prod`, `std` of all elements): there
GM801 makes the statements one operator, and where it cannot, the header asks that no gradient is needed. So it is with
a `softmax` in a function that multiplies rows by rows, and with `torch.cat` of rows and other tensors, but for integers
and for more columns of the same rows: Inductor of torch 2.13 cannot compile their gradients. Where the rows meet a
weight or go through a layer, gradients have to be off, whatever they were chosen from. They have to be off for a number
that is a power, its base, an `alpha` or `beta` too, and `torch.lerp` by such a number is left alone: torch asks there
how large it is.

Rows of unknown number whose width changes, `x[mask].view(-1, 16)`, are computed wrongly by Inductor of torch 2.13,
without a word. So they become one dimension first, `x[...].flatten().view(-1, 16)`; where they have a name by then,
nothing is written: put `.flatten()` there by hand. `view(-1)`, a width that stays (`x.shape[-1]`), and rows that are
counted (`rows.view(len(rows), 4, -1)`) are right. The largest of no rows is -inf there, where eager mode raises.
Such rows, met by a tensor of another size (`y - x[mask]`), are taken to be as many: where the mask chooses one alone,
which eager mode spreads, compiled code raises.
What is cut to a number (`x[:n]`) is in the graph where gradients are off, or where the number is a size as well
(`torch.arange(n)`): else Inductor cannot compile its gradient.
A batch of matrix products with an unknown size in them (`q @ k.transpose(-2, -1)` of `x[mask][None]` or `x[:, :n]`,
of masks such as `torch.arange(n) < lengths`, `torch.einsum`, layers of torch that pay attention) is a compile error
there, and so is a convolution along such a size; one of so many images runs into an error. They stay outside of the
graph where they are seen: evaluate a model with Inductor where such tensors go to other layers, which may multiply or
convolve them. Inductor cannot compile one of so many, `rows.view(batch, -1, width)[:, -1]`: nothing is written there
either.

An integer that Python's `random` draws (`n = random.randint(1, self.most)`) is a tensor for Dynamo, and the graph
breaks where a tensor is cut at it or repeated by it. It is drawn as before, once for each call and from the same
generator, and is such a symbol then. Where `repeat` or `tile` gets a number, its gradient asks for the value: the
header asks that gradients are off.

A number is followed into what is made of it and into the functions of the module that get it, and so is the number of
rows that a mask chooses. Where something asks for its truth (`if n:`, `n or 1`), where one of the functions tests it,
or looks it up in a list, and where it is handed to a callee of which nothing is known, nothing is written: torch 2.13
ends compiled code with an error there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend_codemod.core.findings import Edit, Replacement, Safety
from graphmend_codemod.core.settings import selects
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import FLOAT_WARNING, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.texts.numbers import HELPERS
from graphmend_codemod.rules.proofs.untraced import places as untraced

if TYPE_CHECKING:
    from graphmend_codemod.rules.proofs.outlining.symbols.unbacked import Captured

rule = Rule(
    __name__,
    __doc__,
    title="keep numbers and sizes that the data tells in the graph",
    safety=Safety.OPAQUE,
    contract=Contract(
        cost=Cost.NONE,
        compiled_exceptions="kept, but that a mask is larger or smaller than what it selects from is not noticed, nor "
        "NaN as a whole number that nothing uses",
        compiled_logs=FLOAT_WARNING,
    ),
)

_STATEMENTS = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)


@rule.on(*_STATEMENTS, lines=untraced.lines)
def read_back(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """All that the statement reads from the data, if the graph can carry it."""
    if site.function in HELPERS or not _may_read(site, statement):
        return None
    from graphmend_codemod.rules.proofs.outlining.symbols.unbacked import captured  # a commit hook waits for it

    found = captured(site, statement)
    if found is None or (_breaks_for_certain(site) and _is_taken_whole(site)) or _is_packed(site, statement):
        return None
    if found.without_gradient and _is_taken_with_others(site):
        return None
    if _is_taken_by_a_recorded_one(site):
        return None
    return _answer(site, statement, found)


@rule.on(ast.Assign, words=("randint", "randrange"), here=True)
def drawn_size(site: Site, statement: ast.Assign) -> Diagnostic | None:
    """`n = random.randint(1, self.most)`, by which a tensor is cut or repeated."""
    if site.function in HELPERS:
        return None
    from graphmend_codemod.rules.proofs.outlining.symbols.drawn_sizes import drawn  # a commit hook waits for it

    found = drawn(site, statement)
    return None if found is None or _is_taken_whole(site) else _answer(site, statement, found)


def _answer(site: Site, statement: ast.stmt, found: Captured) -> Diagnostic:
    """The compile path with what the graph can carry, or why there is none."""
    from graphmend_codemod.rules.proofs.outlining.symbols.unbacked import rewritten

    if found.reason is not None:
        return Diagnostic(found.first.message, declined=found.reason)
    if site.torch is None or not site.torch_at_import:
        reason = name_taken() if site.torch is None else "`torch` may not be bound when the module is imported"
        return Diagnostic(found.first.message, declined=reason)
    header = site.header("if", [site.compiling, *found.conditions])
    path = (header + "\n    ", *rewritten(site, statement, found, 1), "\nelse:\n    ")
    edit = Edit(
        (Replacement(site.span(statement), (*path, site.original(statement, 1))),),
        imports=site.imports,
        helpers=found.helpers,
    )
    return Diagnostic(found.first.message, edit=edit)


def _may_read(site: Site, statement: ast.stmt) -> bool:
    """True for a statement that writes at an index, or at which the graph breaks."""
    if isinstance(statement, ast.Assign) and any(isinstance(target, ast.Subscript) for target in statement.targets):
        return True
    return any(untraced.read_at(site, node) is not None for node in untraced.suspects(site).of(statement))


def _breaks_for_certain(site: Site) -> bool:
    """True where more than a guess says that the function breaks the graph: for that it may become one operator."""
    return any(untraced.break_at(site, node) is not None for node in untraced.suspects(site).nodes)


def _is_taken_whole(site: Site) -> bool:
    """True in a function that becomes one operator as a whole."""
    from graphmend_codemod.rules.proofs.outlining.functions import opaque_function

    if opaque_function.is_method_with_results(site):
        return False

    try:
        opaque_function.edit(site)
    except NotProven:
        return False
    return True


def _is_packed(site: Site, statement: ast.stmt) -> bool:
    """True for lengths that GM801 hands to one operator with what packs a sequence by them."""
    if "pack_padded_sequence" not in site.evaluator.scope.outline.words:
        return False
    from graphmend_codemod.rules.proofs.outlining.sequences import packed_sequences

    return selects(site.settings, "GM801", site.summary.path) and packed_sequences.takes(site, statement)


def _is_taken_by_a_recorded_one(site: Site) -> bool:
    """True where GM801 takes the statement into the operator of a later one, by what a recorded run tells."""
    if not site.settings.seen_calls or not selects(site.settings, "GM801", site.summary.path):
        return False
    from graphmend_codemod.rules.proofs.outlining import recorded

    try:
        return recorded.taking_in(site) is not None
    except (KeyError, IndexError, TypeError, ValueError):  # a trace of another version: GM801 says so
        return False


def _is_taken_with_others(site: Site) -> bool:
    """True where GM801 makes the statement, alone or with its neighbours, an operator that has a gradient."""
    if not selects(site.settings, "GM801", site.summary.path):
        return False
    from graphmend_codemod.rules.proofs.outlining.statements import outlined_statements

    try:
        outlined_statements.edit(site)
    except NotProven:
        return False
    return True
