"""untraceable-call (GM603): a call that TorchDynamo never traces, or wrongly, although an equivalent is traceable.

`torch.autograd.Variable(x)` has been `x.detach()` since torch 0.4, a progress bar hands on what it is given, and old
signatures such as `x.add_(alpha, y)` are `x.add_(y, alpha=alpha)`. Dynamo breaks the graph at the one and traces the
other. Eager mode keeps the call, word for word; under `torch.compile` its equivalent runs, with the same arguments.

`random.random()` is left alone: Dynamo traces `random.uniform(0.0, 1.0)`, which draws the same number, and Inductor of
torch 2.13 reads its bits as another dtype. `x * random.uniform(0.0, 1.0)` gives any number there, without a word.

What a call takes for granted is asked for while Dynamo traces: a subclass of tensor, or `requires_grad=True`, goes to
`Variable` and breaks the graph as before. `torch.jit.isinstance` is replaced for plain classes, in
code for TorchScript where that learns the same types, and elsewhere for `List[Tensor]` and `Dict[str, Tensor]`:
compiled code does not warn that an empty container has no elements.
A clock that only messages tell reads 0.0 where these are left out; compiled code does not collect garbage by itself.
`scipy.fft.next_fast_len` is computed by a helper, from integers alone. The default device is that of a new tensor.
`x.new().resize_(size)` resizes a tensor that nobody else knows: it is `x.new_empty(size)`.
Of `torch.FloatTensor(x.size())` Dynamo makes a tensor of the sizes in place of one of that size, without a word, and
of an array of NumPy one of another dtype: it gets `torch.FloatTensor().new_empty(x.size())` and
`torch.tensor(array, dtype=...)`. So do an attribute and a local name that hold such a constructor.
A mask of type uint8, for which torch.compile raises an error, is `mask.byte().bool()` where it is used as a mask alone:
as an index, or as the condition of `torch.where`.
`opt_einsum.contract` of tensors is `torch.einsum`, whose sums round in another order; what it gives is made contiguous.
`float(np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype).min)` is what `torch.finfo` says of the same dtype.
`copy.copy` of a dict, list or set is its own `copy()`. `torchaudio.transforms.Spectrogram` and `MelSpectrogram` ask
`torch.jit.isinstance`: a helper computes with `torch.stft` what such a layer computes, where it is one of these classes
and has no hooks. Flags of cuDNN are left out where there is no device of CUDA;
with one, the graph breaks there as before.

**Constants.** An array that numbers alone decide (`scipy.signal.get_window`, `librosa.filters.mel`, the nodes of a
quadrature, the index table of a padding) is computed while torch.compile traces: a helper marked
as `torch.compiler.assume_constant_result` does runs the author's expression, and the graph holds a copy of the result.
The functions have to be ones of NumPy, SciPy, librosa and PyWavelets that are known to do nothing but compute, or
functions of the project that use only these and their arguments; Dynamo guards the function of the project that is
called. A function of numbers with several such calls, or with objects of a library in between (`pywt.Wavelet(name)`),
is called as a whole, in front of its body, and gives a copy of the array, tensors or number. Numbers are asked for
while tracing. A size that torch.compile made dynamic breaks the graph there, as before. What these functions warn of
appears once for each compilation.

**Set-up.** A call such as `install_hooks(self)` of a function that leaves at once where a flag of the module is set,
and sets the flag itself or in what it calls, sets the module up once. Where that registers hooks or enters a lock,
Dynamo breaks the graph; the helper has torch.compile call it while it traces, with the same module. Where anything else
in the project sets the flag, as to have it done again, nothing is written.

**Keys.** Dynamo traces `min(values, key=rank)` for constants alone. A helper calls the key once for each value, in
their order, and compares as Python does. Where a key gives a tensor, the graph breaks as before.

A progress bar that is kept in a name may be told things, so it is left alone. Warnings of deprecated functions and the
bar itself do not appear from compiled code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_attribute, last_name
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.project.summary.candidates import FOREIGN_NAMES
from graphmend_codemod.rules.framework.edits import judged
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.suspect_calls import HELPERS, NAMES, is_ranking, lines, ranking_lines
from graphmend_codemod.rules.proofs.untraced import places

if TYPE_CHECKING:
    from graphmend_codemod.rules.proofs.twin import Twin

rule = Rule(
    __name__,
    __doc__,
    title="call a traceable equivalent under torch.compile",
    contract=Contract(
        cost=Cost.NONE,
        compiled_exceptions=(
            "kept, but what is computed while tracing raises as an `InternalTorchDynamoError`, which is a RuntimeError"
        ),
        compiled_logs=(
            "progress bars and warnings of deprecated functions are dropped, those of what is computed while tracing "
            "appear once per compilation, others kept"
        ),
        compiled_state=(
            "kept; what sets a module up once does so while tracing; torch.compile notes numbers that it computes "
            "among the globals of the file"
        ),
    ),
)

_STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.If, ast.While, ast.For, ast.With, ast.Assert,
    ast.Raise,
)  # fmt: skip


@rule.on(*_STATEMENTS, words=NAMES, here=True)
def untraceable(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """The first such call that the statement itself evaluates; the edit mends all of them that can be."""
    if site.function.startswith(HELPERS):
        return None
    calls = list(_calls(site, statement))
    if not calls:
        return None
    from graphmend_codemod.rules.proofs.traceable_equivalents import twin_of

    first: Diagnostic | None = None
    twins: list[Twin] = []
    for call in calls:
        message = _message(call)
        try:
            twin = twin_of(site, statement, call)
        except NotProven as reason:
            first = first or Diagnostic(message, declined=str(reason), node=call)
            continue
        if twin is not None and not any(_inside(call, other.call) for other in twins):
            twins.append(twin)
    return first if not twins else _mended(site, statement, twins)


@rule.on(*_STATEMENTS, lines=places.lines)
def spectrum(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """`mel = self.mel_spec(audio)`, a layer of torchaudio."""
    own = site.evaluator.scope.self_name
    calls = [node for node in places.suspects(site).of(statement) if isinstance(node, ast.Call)]
    held = [node for node in calls if is_attribute(node.func, own)]
    nodes = [node for node in held if (site.value(node.func).instance_of or "").startswith("torchaudio.")]
    if not nodes or site.torch is None or site.function.startswith(HELPERS):
        return None
    from graphmend_codemod.rules.proofs.traceable_equivalents import spectrum_of  # a commit hook waits for it

    evaluated = {id(node) for node in places.evaluated(site, statement)}
    found = [twin for node in nodes if id(node) in evaluated and (twin := spectrum_of(site, node)) is not None]
    twins = [each for each in found if not any(_inside(each.call, other.call) for other in found)]
    return _mended(site, statement, twins) if twins else None


@rule.on(*_STATEMENTS, lines=ranking_lines)
def ranking(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """`min(values, key=rank)`."""
    calls = [node for node in places.evaluated(site, statement) if isinstance(node, ast.Call) and is_ranking(node)]
    if not calls or site.torch is None or site.function.startswith(HELPERS):
        return None
    from graphmend_codemod.rules.proofs.ranked_values import ranked  # a commit hook waits for it

    found: list[Twin] = []
    for call in calls:
        try:
            twin = ranked(site, statement, call)
        except NotProven as reason:
            return Diagnostic(_message(call), declined=str(reason), node=call)
        found += [twin] if twin is not None and not any(_inside(call, other.call) for other in found) else []
    return _mended(site, statement, found) if found else None


def _mended(site: Site, statement: ast.stmt, twins: Sequence[Twin]) -> Diagnostic:
    """The edit that puts all the twins in their places."""
    from graphmend_codemod.rules.proofs.twin import Twin, is_choice, replacement

    left_out = (Twin(each, each, "", (site.compiling,)) for twin in twins for each in twin.without)
    replacements = tuple(replacement(site, statement, twin) for twin in (*twins, *left_out))
    helpers = tuple({helper.name: helper for twin in twins for helper in twin.helpers}.values())
    message = _message(twins[0].call)
    # Of two functions in a conditional expression, TorchScript compiles none.
    scriptable = not helpers and not any(is_choice(statement, twin) for twin in twins)
    raises = not _is_alone(statement, twins[0]) or twins[0].raises
    edit = Edit(replacements, imports=site.imports, helpers=helpers, scriptable=scriptable, raises=raises)
    return Diagnostic(message, edit=edit, node=twins[0].call)


def _is_alone(statement: ast.stmt, twin: Twin) -> bool:
    """True where the statement does nothing else than what the twin does: `y = copy(x)`."""
    if isinstance(statement, ast.Assign) and not all(isinstance(each, ast.Name) for each in statement.targets):
        return False
    return isinstance(statement, (ast.Assign, ast.Expr)) and statement.value is twin.replaced


@rule.on(ast.Assign, ast.AugAssign, ast.Return, words=("np", "numpy", FOREIGN_NAMES), lines=lines)
def computed(site: Site, statement: ast.Assign | ast.AugAssign | ast.Return) -> Diagnostic | None:
    """`window = torch.from_numpy(scipy.signal.get_window("hann", self.n_fft))`."""
    from graphmend_codemod.rules.proofs.constants import cached_functions, computed_arrays

    found = computed_arrays.arrays_in(site, statement)
    function = cached_functions.computed(site, statement)
    if function is not None and (not found or function[1] > 1):
        message = f"computes a constant with calls that Dynamo does not trace: `{site.function}`"
        return judged(message, lambda: cached_functions.edit(site, function[0]))
    if not found:
        return None
    message = f"computes a constant with a call that Dynamo does not trace: `{speculation.short(found[0].node)}`"
    return judged(message, lambda: computed_arrays.edit(site, statement, found))


def _sets_up(node: ast.Expr) -> bool:
    """True for `install(self)`: a look at the node alone."""
    call = node.value
    named = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and len(call.args) == 1
    return named and isinstance(call.args[0], ast.Name)  # type: ignore[attr-defined]


@rule.on(ast.Expr, candidate="value", when=_sets_up)
def once(site: Site, statement: ast.Expr) -> Diagnostic | None:
    """`install_hooks(self)`, which does nothing where a flag of the module says that it has been done."""
    from graphmend_codemod.rules.proofs.constants import set_ups  # a commit hook waits for it

    found = set_ups.set_up(site, statement)
    if found is None:
        return None
    message = f"sets the module up once, which Dynamo does not trace: `{speculation.short(found.call)}`"
    return judged(message, lambda: set_ups.edit(site, statement, found))


def _message(call: ast.expr) -> str:
    from graphmend_codemod.rules.proofs.byte_masks import is_mask_of_bytes
    from graphmend_codemod.rules.proofs.old_constructors import NAMES as OLD_CONSTRUCTORS

    if isinstance(call, ast.Call) and is_mask_of_bytes(call):
        return f"makes a mask of type uint8, for which torch.compile raises an error: `{speculation.short(call)}`"
    traced_wrong = isinstance(call, ast.Call) and last_name(call.func) in OLD_CONSTRUCTORS
    what = "Dynamo traces this call as a different one" if traced_wrong else "Dynamo does not trace this call"
    return f"{what}: `{speculation.short(call)}`"


def _calls(site: Site, statement: ast.stmt) -> Iterator[ast.Call]:
    found = [node for node in places.evaluated(site, statement) if isinstance(node, ast.Call) and _is_suspect(node)]
    yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _is_suspect(node: ast.Call) -> bool:
    name = last_name(node.func)
    return name in NAMES


def _inside(call: ast.expr, other: ast.expr) -> bool:
    return any(part is call for part in ast.walk(other) if part is not other)
