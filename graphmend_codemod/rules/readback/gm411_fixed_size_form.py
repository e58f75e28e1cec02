"""fixed-size-form (GM411): an operator reads a number out of a tensor, and one of a fixed size needs no number.

`x[:, index[0]]` reads `index[0]` to know where the view begins, `torch.roll(x, -int(t), -1)` by how much to roll, and
`F.one_hot(t, max(t.max() + 1, n))[..., :n]` how many classes to write, of which it drops all but the first `n`. Each is
a device sync and a graph break. Under `torch.compile` the tensor itself says which elements are taken: an index of one
element, rolled positions, a comparison with `torch.arange(n)`. Eager mode keeps the statement, word for word.

Where the source tells how large a result is, nothing is read at all: `torch.eye(n, dtype=torch.bool)` chooses the
diagonal and its inverse all but the diagonal, `repeat_interleave` makes as many rows as the list says from which its
counts were built, and `torch.arange(2, x.dim()).tolist()` is a range. What any other mask selects that is built from
sizes and constants alone, in the statements before it, is counted while Dynamo traces: the statements are copied into a
function of these integers, and a search finds that many places. Other sizes are another graph. A range that is
compared with an integer, `x[:, torch.arange(n) != k]`, is a list of the integers of which the comparison is true.

What `repeat_interleave` makes of a tensor of counts, and arithmetic combines with another tensor (`x - rows`), has as
many rows as that one: where it has not, eager mode raises, but for a single row, which broadcasting spreads. Compiled
code repeats to that size, spreads a single row, and checks the counts on the device: it raises RuntimeError, on CUDA at
the next synchronisation (nothing is written where the setting `guards` wants no such checks). Each use of the rows has
to be arithmetic or a comparison with the same tensor, the first one has to follow in any case, and all that takes part
is asked to be a tensor or a number. So does `einsum` in the next statement tell the size, by a letter that another
tensor has as well: `torch.einsum("ij,ijk->ik", y, rows)`. There, all of them may be values of a dict.

A window that is stored, `out[i] = x[i, :, start:start + n]`, has to be as wide as the place for it, or one element,
which is spread: of all other widths eager mode raises. Compiled code takes as many elements from `start` on as the
place has, spreads a single one, and checks the bounds on the device, as above. Nothing else may refer to the tensor
`out`.

`x.new_full(size, t)` and `torch.full_like(x, t)` read the number that `t` holds. What `x.new_empty(size)` makes is
filled with the tensor instead, where both have one dtype and device and `t` needs no gradient.

That the number is a 0-dim `int64` tensor is asked for while Dynamo traces, and so is all else that a form needs.
`x[:, t]` is a view in eager mode, so nothing may write into it or into `x` while it is in use. `x[t] = 1` and
`x[t] = y` become writes at an index of one element, `y` where it has the dtype and device of `x`. A negative class, for
which `F.one_hot` raises in eager mode, matches no class in compiled code, as it does where torch.compile itself traces
`F.one_hot`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.analysis.outline import INDEXED, Outline
from graphmend_codemod.analysis.scope import of_kind
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Replacement
from graphmend_codemod.rules.framework.conditions import names_in
from graphmend_codemod.rules.framework.edits import line_of, path_beside
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.fixed_forms import OPERATORS, FixedForm, candidates, fixed_form
from graphmend_codemod.rules.proofs.untraced.places import evaluated

rule = Rule(
    __name__,
    __doc__,
    title="use an operator of a fixed size that reads no tensor",
    contract=Contract(
        cost=Cost.NONE,
        compiled_exceptions=(
            "kept, but for a negative class, which compiled code gives a row of zeros; what the statements that build "
            "a counted mask raise ends as an `InternalTorchDynamoError`, which is a RuntimeError; repeated rows and "
            "stored windows that do not fit raise another message, on CUDA at the next synchronisation"
        ),
        saves_masks=True,
    ),
)

_STATEMENTS = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.If, ast.While, ast.For, ast.Assert)
_KNOWN = "# The size is known without reading the tensor."
_COMMENT = "# The number stays in its tensor: to read it back would end the graph."
_WORDS = frozenset({INDEXED, "one_hot", *OPERATORS})
_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)


def _lines(outline: Outline) -> list[int]:
    return [node.lineno for node in candidates(outline)]


@rule.on(*_STATEMENTS, words=_WORDS, lines=_lines)
def reads_a_tensor(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """The first such operator that the statement itself evaluates; the edit mends all of them, or none."""
    suspects = {id(node) for node in candidates(site.evaluator.scope.outline)}
    found = [node for node in evaluated(site, statement) if id(node) in suspects and isinstance(node, ast.expr)]
    forms: list[FixedForm] = []
    for node in sorted(found, key=lambda each: (each.lineno, each.col_offset)):
        message = f"reads a number out of a tensor (device sync): `{short(node)}`"
        try:
            form = fixed_form(site, statement, node)
        except NotProven as reason:
            return Diagnostic(message, declined=str(reason), node=node)
        if form is not None and site.torch is None:
            return Diagnostic(message, declined=name_taken(), node=node)
        if form is not None and not any(part is node for other in forms for part in ast.walk(other.node)):
            forms.append(form)
    if not forms:
        return None
    message = f"reads a number out of a tensor (device sync): `{short(forms[0].node)}`"
    stored = any(isinstance(getattr(form.node, "ctx", None), ast.Store) for form in forms)
    if stored and _needs_choice(statement, forms):
        return Diagnostic(message, declined="assign what is written to a variable first", node=forms[0].node)
    helpers = tuple({each.name: each for form in forms for each in form.helpers}.values())
    edit = Edit(_replacements(site, statement, forms), imports=site.imports, helpers=helpers)
    return Diagnostic(message, edit=edit, node=forms[0].node)


def _needs_choice(statement: ast.stmt, forms: list[FixedForm]) -> bool:
    """True where a statement has statements in it, skips a part, or binds what the conditions read."""
    nested = any(isinstance(part, (ast.IfExp, ast.BoolOp, ast.Lambda)) for part in ast.walk(statement))
    inside = {part.id for part in ast.walk(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    outside = {part.id for target in getattr(statement, "targets", ()) for part in of_kind(ast.walk(target), ast.Name)}
    read = names_in(condition for form in forms for condition in form.conditions)
    return nested or not isinstance(statement, _SIMPLE) or not read.isdisjoint(inside - outside)


def _replacements(site: Site, statement: ast.stmt, forms: list[FixedForm]) -> tuple[Replacement, ...]:
    """Two branches, or a choice in the statement where it needs one."""
    from graphmend_codemod.rules.proofs.twin import Twin, replacement

    if _needs_choice(statement, forms):
        twins = (Twin(form.node, form.node, form.text, tuple(_asked(site, form.conditions))) for form in forms)
        return tuple(replacement(site, statement, twin) for twin in twins)
    conditions = _asked(site, [each for form in forms for each in form.conditions])
    written = {id(form.node): (form.node, form.text) for form in forms}
    copied = [form.copied for form in forms if form.copied is not None]
    written |= {id(each): (each, f"{site.text(each)}.clone()") for each in copied}
    comment = _KNOWN if all(form.sized for form in forms) else _COMMENT
    return (path_beside(site, statement, conditions, [comment, line_of(site.but(written=written), statement)]),)


def _asked(site: Site, conditions: Sequence[str]) -> list[str]:
    """The conditions behind the question for the compiler, or behind that for Dynamo alone where one of them is it."""
    asks_dynamo = next((each for each in conditions if each.endswith(".is_dynamo_compiling()")), site.compiling)
    return list(dict.fromkeys([asks_dynamo, *conditions]))
