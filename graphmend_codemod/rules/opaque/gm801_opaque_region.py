"""opaque-region (GM801): code that only an opaque operator takes into the graph.

Some code has no traceable form: recurrent layers, loops whose number of steps depends on data, calls that leave torch.
What goes into it and what comes out are tensors of known shapes all the same, so torch.compile can call it as a whole,
as a custom operator (`torch.library`) with the author's own code in it.

That is the last resort, for sites that no other rule fixes, and it is not the same as a graph of plain operators: the
compiler does not look inside and fuses nothing with it. So these fixes are a kind of their own, *opaque*, which only
`graphmend fix --opaque` or the setting `opaque = true` applies, and which is counted apart everywhere. A gradient takes
what autograd kept of the call, as in eager mode. A second one of the same call runs the code again, and so does one for
which the graph computed an input again to save memory. That run takes what the tensors hold then: autograd notices a
change in place before the backward pass, but not one through `.data`. What an operator returns shares no memory with
what it was given. Under `torch.func` and in forward mode, whose derivatives an operator does not have, the graph breaks
as before.

**Functions.** A function outside of classes that holds such a site, and that returns tensors whose shapes do not
depend on data, is called as one operator; its body stays. The shapes come from a part of the function that is cut out
for it: without what only writes into tensors, and with one element in place of `x[mask]` or the values of
`torch.unique`, where these are summed up or chosen from again. It may write into what it made, raise, draw random
numbers and call functions of its file that do no more. What it changes otherwise, or gives back in sizes that data
decides, is the reason not to, and so are results that share memory, and questions about the gradient mode. A result of
floating dtype counts as one that needs a gradient wherever an input does. A second gradient runs the function with the
globals of that moment, which code outside of the file may have changed since. Where the function itself drops elements
of a transposed tensor, that gradient has another mask than the first run (`torch.func.vjp`, torch 2.13).

**Functions that fill arrays.** A function that draws with NumPy and returns one array, which it makes with `np.zeros`
at a shape that comes from its parameters (the masks of SpecAugment), is called as one operator as well. It gets tensors
without gradients, numbers and tuples of integers, and NumPy draws the numbers that it draws in eager mode, as often
and in the same order. So does a statement that draws one number for tests alone (`p = np.random.uniform(0, 1)`, and
`if self.training and p < self.layerdrop:`); where a test asks for the number, the graph breaks there, as before.

**Cached functions of numbers.** A function under `functools.cache` or `lru_cache` that gets numbers, words, dtypes and
devices alone is called while tracing, and the graph keeps its result as a constant: its author says that equal
arguments give equal results. That is no operator and costs nothing. A size that may change breaks the graph as before.

**Methods that change tensors of the instance.** A method that returns nothing and fills a queue, starts a codebook or
counts in buffers (`if self.initted: return`, `place = int(self.place)`) is called as one operator, which gets these
tensors and gives back their new values; the graph copies these into them. That takes longer than a break where they
are large, so with more than 2**18 elements on a CPU, and 2**24 elsewhere, the graph breaks as before. It may call other
methods that do no more, log messages, and call functions of its file that it holds as attributes or hands on
(`kmeans(x, sample=self.sample)`). Attributes that it sets to a constant have to hold it already, functions have to
be the ones that its class assigns, flags in front of what is not known have to be False, there has to be one process
where `torch.distributed.is_initialized()` decides about more, also in functions that return at once otherwise
(`broadcast_tensors(self.buffers())`), arguments have to be tensors
and constants, and gradients off (as under `@torch.no_grad()`) unless all changes go through `.data` or `.detach()`:
all that is told apart while tracing, and the graph breaks as before. Where autograd saved a tensor before it changes
through `.data`, compiled code raises in place of a gradient of the new values. It copies each time, also where the
method changes nothing: so a module that is called twice in one graph, or under activation checkpointing, raises where
its first call saved such a tensor for a gradient. No other tensor of the instance may share memory with what changes,
which is asked while tracing. `self.queue.clone()` in the class
becomes an operator, too: Inductor leaves out a copy of a tensor that changes later in the graph, and the gradient
would be wrong. In a method that does more, such as a `forward`, one statement that only does this is called as such an
operator: `if self.initialized.item() == 0: self.start(x)`, or a loop that fills a queue. New data of a tensor,
`self.scale.data = 1 / x.std()`, counts as such a change where it shares memory with nothing, and the tensor shares its
own with no other one of the module; compiled code keeps the tensor's memory and device, and raises for another shape.

**Methods with results.** A method of a module that changes nothing, but for what it made itself, and returns tensors of
shapes that do not depend on data is called as one operator as well. It gets the parameters and buffers that the method
reads as inputs; numbers that it reads have a guard each. Layers, lists and other objects of the instance are told
apart while tracing or are the reason not to.

**Statements.** Where the function as a whole cannot be one, as in a `forward` that runs layers, the fewest statements
around the site that can are: they are taken in before and behind it, eight at most, until what is read later are
tensors of shapes that do not depend on data. Eager mode runs the author's statements; the operator holds a copy of
them. It gets the names that they read, and what they read of the instance. They may write into what they make, and
into a tensor that nothing else refers to, which the operator copies. What they return may share no memory with what
they were given, and they may not leave the function in their middle.

**CTC losses.** What torch calls for one has no shape for torch.compile, but the loss of a batch is one element, and
with `reduction="none"` one for each sequence. So statements with `F.ctc_loss` or an `nn.CTCLoss` of the instance become
one operator, `torch.backends.cudnn.flags` around them included. The header asks for the reduction of a layer, and that
lengths are tensors: with lists of numbers the graph breaks as before.

**Layers that a random number skips.** A round of `for layer in self.layers:` that a number from `torch.rand` skips
(LayerDrop) becomes one operator, which gets the number, compares it and runs the layer, or gives back what it was
given. Dropout draws the numbers that it draws in eager mode, and running statistics of a skipped layer stay. Parameters
of a skipped layer get a gradient of zeros where eager mode leaves them without one. The layers are made in `__init__`,
of classes in the same file that set no attributes and write into nothing that they are given; functions that a table of
the project chooses (`TABLE[kind](self, x)`) are taken to compute. What follows the layer has to be the same in both
cases: flags are asked for in the header, and so are autocast, `**words` without words, and the flags of a base class in
another file. For caches, hooks and layers of other classes the graph breaks as before. A layer that gives a tensor of
another shape or dtype than it was given raises a RuntimeError. With Inductor and AdamW (12 layers of width 128, 8 x 64
tokens, a bound of 0.1, CPU seconds of one thread) the start took 6.1 s with the break and 7.4 s with the operator, a
step 229 and 222 ms; with all layers run and selected (GM112) 22.9 s and 231 ms.

**Loops.** `while (x > 1).any():` becomes one operator where each round only computes tensors from tensors and gives the
names that it binds the shapes and dtypes that they had. That is asked while tracing, by one round of which nothing
else is used, so a round has to be possible even if none would run; other loops break the graph as before.

**Assignment problems.** `scipy.optimize.linear_sum_assignment` becomes an operator at the statement that calls it: it
finds as many pairs as the shorter side of the matrix is long. Matrices that need gradients, are not on the CPU or have
another number of dimensions are told apart while tracing, and break the graph as before.

**Statements that a recorded run went through.** With `fix --trace` and a trace that `graphmend trace --calls` recorded,
a statement that broke the graph becomes an operator with the author's own statement in it: calls into libraries, NumPy,
generators. What it is given and gives is what at least two calls of the run had: dtypes, dimensions, devices, and how
sizes follow from those that went in. A size that nothing explains is a symbol of the graph. What no call varied, and
what only happened to agree, is asked for in the header, so other calls break the graph as before. So do calls in which
a name held a value of another kind than in most (a mask, and None), where no statement around takes them all. The
operator compares what it gives with that and raises an error where it differs: in sizes, dtypes or how the results are
put together, in whether one needs a gradient, or where it shares or changes what went in, buffers and attributes of an
instance included. A tensor that is given by two names is one tensor in the operator, too, for code that asks `other is
x`. A gradient takes what autograd kept of the call, as eager mode does; a second one of the same call runs it again.
Statements that changed the instance or an argument in the run, gave no tensors, or share memory with what went in are
left alone, and so are those that read an instance, an object or a variable of the file which the source may change
earlier in the same graph, under a condition that no recorded call met; an object that is another one at each call, for
which the graph would be compiled each time; and dictionaries and sets. Statements behind one are taken in, twelve at
most with it, where it gives an object or a flag that no graph holds; none of them is compiled. A list that a loop fills
is taken in with what makes it and what joins it (`parts = []`, `torch.cat(parts)`). Where the header or a size would
read a length that only the data tells (`places = mask.nonzero()`), the statements down from the one that makes it are
one operator, if that does away with the length; a call that finds another number of places may raise an error then. So
are statements behind one that broke the graph as well and gives such a length. A function out of a table that was the
same one in each call goes in, and `**kwargs` that was empty in each call has to be empty. Layers of the instance that
run around the statements may change themselves: the header asks that they share no module, tensor or container with
what the statements read, do not lead to the instance and have no hooks. No operator gives a length of the data of which
GM802 knows that Inductor cannot compile what follows.

**Recurrent layers.** `self.lstm(x)` and `self.lstm.num_layers` get a compile path, in which an operator runs the layer
on what it is given, with its parameters as inputs. Compiled graphs hold these parameters themselves: after one is
replaced by another (not after it changed in place, as optimizers and `load_state_dict` do), a call that needs gradients
raises an error that asks for `torch.compiler.reset()`. Writing into what the layer was given, before the backward pass,
raises as well, also where the layer keeps a copy (`batch_first`). Writing into what the layer gave, which raises in
eager mode, does not: the gradient is that of what it gave. Autocast, `torch.export`, subclasses of tensors and
layers of other classes are told apart while tracing, and break the graph as before. Where the constructor chooses the
class, `getattr(nn, kind)(...)` or one of a table, the compile path takes any of torch's three.

**Packed sequences.** Statements one after the other that pack a padded tensor, run such a layer and pad again
(`pack_padded_sequence`, `self.lstm`, `pad_packed_sequence`) become one operator, which does the same; assignments that
do not use the packed sequence may stand between them, and all may depend on one test (`lengths is not None`). Lengths
that are read back to pack by them (`lengths.tolist()`, `lengths.cpu().numpy()`) stay the tensor that they were. Where
the last states alone are used, nothing is padded. Without `total_length` the longest length is a number that the graph
carries as a symbol, and what later asks for it breaks the graph or cannot be compiled. The gradient turns autograd on
inside of the operator, for which torch has no public way. Where the packed sequence itself is used elsewhere, nothing
is written.
"""

from __future__ import annotations

import ast
import contextlib

from graphmend_codemod.analysis import speculation
from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.edits import judged
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import About, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import is_traced_assertion, reads_tensor, split
from graphmend_codemod.rules.proofs.outlining.sequences.recurrent_layers import layers_in
from graphmend_codemod.rules.proofs.outlining.texts.numbers import HELPERS
from graphmend_codemod.rules.proofs.untraced import places as untraced
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced
from graphmend_codemod.rules.proofs.untraced.tests import tested

rule = Rule(
    __name__,
    __doc__,
    title="run code that cannot be traced as one opaque operator under torch.compile",
    safety=Safety.OPAQUE,
    contract=Contract(
        cost=Cost.OUTLINED,
        cost_note=(
            "the code runs as in eager mode, and each call takes some 0.05 ms more: code of less than a millisecond "
            "gets slower; what a method changes is copied twice"
        ),
        compiled_state="kept; torch.compile notes a number for each module among the globals of the file",
        saves_inputs=True,
    ),
)

_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)


@rule.on(*_SIMPLE)
def recurrent_layer(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """`x = self.lstm(x)[0]`."""
    layers = layers_in(site, statement)
    if not layers:
        return None
    from graphmend_codemod.rules.proofs.outlining.sequences import (  # a commit hook waits for them
        packed_sequences,
        recurrent,
    )

    message = f"calls or reads a recurrent layer, which Dynamo does not trace: `{speculation.short(layers[0])}`"
    try:
        packed = packed_sequences.edit(site, statement, layers[0]) if len(layers) == 1 else None
        return Diagnostic(message, edit=packed or recurrent.edit(site, statement, layers))
    except NotProven as reason:
        return Diagnostic(message, declined=str(reason))


_STATEMENTS = (*_SIMPLE, ast.If, ast.While, ast.For, ast.Assert)


@rule.on(*_STATEMENTS, lines=untraced.lines)
def untraced_call(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """`numbers, places, counts = torch.unique(x, return_inverse=True, return_counts=True)`."""
    if site.function in HELPERS:
        return None
    for node in untraced.suspects(site).of(statement):
        each = untraced.break_at(site, node)
        if each is not None and any(part is node for part in untraced.evaluated(site, statement)):
            solved = _assignment(site, statement, each) or _drawn(site, statement, each)
            return _with_others(site, each, _function(site, each)) if solved is None else solved
    return None


def _assignment(site: Site, statement: ast.stmt, each: Untraced) -> Diagnostic | None:
    """`rows, columns = linear_sum_assignment(cost)`, if that is what is not traced."""
    if not isinstance(each.node, ast.Call) or not isinstance(statement, _SIMPLE):
        return None
    if not (site.resolve(each.node.func) or "").startswith("scipy.optimize."):
        return None
    from graphmend_codemod.rules.proofs.outlining.statements import assignments

    calls = assignments.calls_in(site, statement) if site.function not in assignments.HELPERS else []
    if not calls:
        return None
    return judged(each.message, lambda: assignments.edit(site, statement, calls))


def _drawn(site: Site, statement: ast.stmt, each: Untraced) -> Diagnostic | None:
    """`p = np.random.uniform(0, 1)`, if that is what is not traced and tests alone ask for it."""
    if not isinstance(statement, ast.Assign) or statement.value is not each.node:
        return None
    from graphmend_codemod.rules.proofs.outlining.statements import drawn_numbers

    between = drawn_numbers.bounds(site, statement)
    if between is None:
        return None
    try:
        return Diagnostic(each.message, edit=drawn_numbers.edit(site, statement, between))
    except NotProven:
        return None


@rule.on(ast.If, ast.While, ast.Assert, candidate="test")
def untraced_test(site: Site, statement: ast.If | ast.While | ast.Assert) -> Diagnostic | None:
    """`while (x > 1).any()`."""
    each = tested(site, statement.test)
    known = each is None
    if each is None:
        if not site.settings.opaque or not reads_tensor(site, statement.test):
            return None
        condition = split(site, statement.test) if isinstance(statement, ast.Assert) else None
        if condition is not None and is_traced_assertion(site, statement, condition):  # type: ignore[arg-type]
            return None
        each = Untraced(statement.test, "data-dependent branch", "")
    found = _function(site, each)
    if found.edit is None and isinstance(statement, ast.While):
        from graphmend_codemod.rules.proofs.outlining.statements import data_loops

        try:
            found = Diagnostic(each.message, edit=data_loops.edit(site, statement))
        except NotProven as reason:
            found = found._replace(declined=f"{found.declined}; {reason}")
    found = _with_others(site, each, found)
    # Other rules have reasons for a test of a tensor; this one is added to them where operators are asked for.
    return None if known and found.edit is None and not site.settings.opaque else found


@rule.on(ast.For, words=("rand", "random", "uniform", "rand_like"), candidate="test")
def layer_or_not(site: Site, statement: ast.For) -> Diagnostic | None:
    """`for layer in self.layers: if torch.rand([]) < self.layerdrop: continue`."""
    if not site.settings.opaque:
        return None
    from graphmend_codemod.rules.proofs.outlining.statements import skipped_layers
    from graphmend_codemod.rules.proofs.select import layer_draws

    drawn = layer_draws.drawn_in(site, statement)
    if drawn is None:
        return None

    try:
        made = skipped_layers.edit(site, statement, drawn)
    except NotProven:
        return None  # GM112 says what is in the way there
    return Diagnostic(layer_draws.message_of(drawn), edit=made, node=drawn.compared)


@rule.on(*_STATEMENTS, ast.With, ast.Raise, candidate="recorded")
def recorded_statement(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """`p = self.ot_fn(a, b, M.detach().cpu().numpy())`, of which a recorded run tells what it gives."""
    from graphmend_codemod.rules.proofs.outlining import recorded

    message = "broke the graph in the recorded run"
    try:
        found = recorded.edit(site, statement)
    except (KeyError, IndexError, TypeError, ValueError):  # a trace of another version, or one that was edited
        why = "the trace cannot be read; record it again"
        return Diagnostic(message, declined=f"by the recorded run: {why}", about=About.RECORDED_RUN)
    except NotProven as reason:
        why = f"no opaque operator, for {reason}"
        return Diagnostic(message, declined=f"by the recorded run: {why}", about=About.RECORDED_RUN)
    if found is None:
        return None
    return Diagnostic(f"{message}; what it gives follows from {found.calls} recorded calls", edit=found.edit)


def _function(site: Site, each: Untraced) -> Diagnostic:
    from graphmend_codemod.rules.proofs.outlining.functions import opaque_function

    try:
        return Diagnostic(each.message, edit=opaque_function.edit(site))
    except NotProven as reason:
        return _declined(each, reason)


def _declined(each: Untraced, reason: NotProven) -> Diagnostic:
    declined = f"no opaque operator: {reason}"
    if each.advice:
        return Diagnostic(each.message, declined=f"{each.advice}; {declined}", about=About.BOTH)
    return Diagnostic(each.message, declined=declined, about=About.OPERATOR)


def _with_others(site: Site, each: Untraced, found: Diagnostic) -> Diagnostic:
    """The verdict; where it has no edit, the statement as one operator, with as few others as that takes."""
    if found.edit is not None:
        return found
    from graphmend_codemod.rules.proofs.outlining.statements import outlined_statements, updating_statements

    try:
        return Diagnostic(each.message, edit=outlined_statements.edit(site))
    except outlined_statements.InStatement as reason:
        # Told in place of what else of the function is in the way: what the author would have to change first.
        found = _declined(each, reason) if not isinstance(site.place.statement, ast.While) else found
    except NotProven:
        pass
    with contextlib.suppress(NotProven):
        return Diagnostic(each.message, edit=updating_statements.edit(site))
    return found
