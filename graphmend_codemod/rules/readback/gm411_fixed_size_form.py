"""fixed-size-form (GM411): an operator reads a number out of a tensor, and one of a fixed size needs no number.

`x[:, index[0]]` reads `index[0]` to know where the view begins, `torch.roll(x, -int(t), -1)` by how much to roll, and
`F.one_hot(t, max(t.max() + 1, n))[..., :n]` how many classes to write, of which it drops all but the first `n`. Each is
a device sync and a graph break. Under `torch.compile` the tensor itself says which elements are taken: an index of one
element, rolled positions, a comparison with `torch.arange(n)`. Eager mode keeps the statement, word for word.

Where the source tells how large a result is, nothing is read at all: `torch.eye(n, dtype=torch.bool)` chooses the
diagonal and its inverse all but the diagonal, `repeat_interleave` makes as many rows as the list says from which its
counts were built, and `torch.arange(2, x.dim()).tolist()` is a range. What any other mask selects that is built from
sizes and constants alone, in the statements before it, is counted while Dynamo traces: the statements are copied into a
function of these integers, and a search finds that many places. Other sizes are another graph.

That the number is a 0-dim `int64` tensor is asked for while Dynamo traces, and so is all else that a form needs.
`x[:, t]` is a view in eager mode, so nothing may write into it or into `x` while it is in use. A negative class, for
which `F.one_hot` raises in eager mode, matches no class in compiled code, as it does where torch.compile itself traces
`F.one_hot`.
"""

from __future__ import annotations

import ast
import re

from graphmend_codemod.analysis.scope import INDEXED, Outline
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Replacement, Safety
from graphmend_codemod.rules.framework.edits import line_of
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import Clean, Contract, Cost, Declined, Diagnostic, Example, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.compile_paths import in_front
from graphmend_codemod.rules.proofs.numbers.fixed_forms import FixedForm, candidates, fixed_form
from graphmend_codemod.rules.proofs.untraced.places import evaluated

_SETUP = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, t: torch.Tensor, n: int):
        ...
        return x
"""

rule = Rule(
    code="GM411",
    slug="fixed-size-form",
    title="use an operator of a fixed size that reads no tensor",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(
        cost=Cost.NONE, compiled_exceptions="kept, but for a negative class, which compiled code gives a row of zeros"
    ),
    examples=(
        Example(
            before="""
            best = x.mean(0).argmax()
            x = x * x[:, best].relu().unsqueeze(1)
            """,
            after="""
            best = x.mean(0).argmax()
            if (
                torch.compiler.is_compiling()
                and isinstance(x, torch.Tensor)
                and isinstance(best, torch.Tensor)
                and best.dim() == 0
                and best.dtype == torch.int64
                and best.device == x.device
            ):
                # The number stays in its tensor: to read it back would end the graph.
                x = x * x[:, best.reshape(1)].squeeze(1).relu().unsqueeze(1)
            else:
                x = x * x[:, best].relu().unsqueeze(1)
            """,
            setup=_SETUP,
            inputs=("torch.randn(3, 5), torch.zeros(2, dtype=torch.long), 4",),
        ),
        Example(
            before="""
            x = torch.roll(x, -int(t[0]), -1)
            """,
            after="""
            if (
                torch.compiler.is_compiling()
                and isinstance(x, torch.Tensor)
                and isinstance(t, torch.Tensor)
                and t.dim() == 1
                and t.dtype == torch.int64
                and t.device == x.device
            ):
                # The number stays in its tensor: to read it back would end the graph.
                x = x.index_select(
                    -1,
                    (torch.arange(x.size(-1), device=x.device) + t[0])
                    % x.size(-1),
                )
            else:
                x = torch.roll(x, -int(t[0]), -1)
            """,
            setup=_SETUP,
            inputs=(
                "torch.randn(3, 5), torch.tensor([2, 1]), 4",
                "torch.randn(3, 5), torch.tensor([-8, 1]), 4",
            ),
        ),
        Example(
            before="""
            classes = max(t.max() + 1, n)
            x = F.one_hot(t, classes)[..., :n]
            """,
            after="""
            classes = max(t.max() + 1, n)
            if (
                torch.compiler.is_compiling()
                and isinstance(t, torch.Tensor)
                and t.dtype == torch.int64
                and t.numel() > 0
                and isinstance(n, int)
                and n >= 0
            ):
                # The number stays in its tensor: to read it back would end the graph.
                x = (t.unsqueeze(-1) == torch.arange(n, device=t.device)).to(
                    torch.int64
                )
            else:
                x = F.one_hot(t, classes)[..., :n]
            """,
            setup=_SETUP,
            inputs=(
                "torch.randn(3), torch.tensor([2, 0]), 4",
                "torch.randn(3), torch.tensor([[7, 3]]), 4",
            ),
        ),
        Example(
            before="""
            same = torch.eye(n, dtype=torch.bool, device=x.device)
            x = x[~same].view(n, -1)
            """,
            after="""
            same = torch.eye(n, dtype=torch.bool, device=x.device)
            if (
                torch.compiler.is_compiling()
                and isinstance(x, torch.Tensor)
                and isinstance(same, torch.Tensor)
                and same.dtype == torch.bool
                and same.dim() == 2
                and x.shape == same.shape
                and x.numel() > 0
            ):
                # The size is known without reading the tensor.
                x = x.flatten()[1:].reshape(x.size(0) - 1, x.size(0) + 1)[:, :-1].reshape(-1).clone().view(n, -1)
            else:
                x = x[~same].view(n, -1)
            """,
            setup=_SETUP,
            inputs=("torch.randn(4, 4), torch.zeros(2), 4",),
        ),
        Declined(
            source="""
            best = x.mean(0).argmax()
            y = x[:, best]
            y += 1
            """,
            because="may write in place",
            setup=_SETUP,
        ),
        Declined(
            source="""
            x = torch.roll(x, int(t[0]))
            """,
            because="its dimension is no constant",
            setup=_SETUP,
        ),
        Declined(
            source="""
            x = F.one_hot(t, max(t.max(), n))[..., :n]
            """,
            because="is larger than all of `t`",
            setup=_SETUP,
        ),
        Clean(
            source="""
            x = x[:, t].roll(1, 0) + F.one_hot(t, n)[..., :n].sum()
            """,
            setup=_SETUP,
        ),
    ),
)

_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.If, ast.While, ast.For, ast.Assert)
_KNOWN = "# The size is known without reading the tensor."
_COMMENT = "# The number stays in its tensor: to read it back would end the graph."
_WORDS = frozenset({INDEXED, "one_hot", "roll", "tolist", "repeat_interleave", "masked_select", "nonzero", "argwhere"})
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def _lines(outline: Outline) -> list[int]:
    return [node.lineno for node in candidates(outline)]


@rule.on(*_STATEMENTS, words=_WORDS, lines=_lines)
def reads_a_tensor(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """The first such operator that the statement itself evaluates; the edit mends all of them that can be."""
    suspects = {id(node) for node in candidates(site.evaluator.scope.outline)}
    found = [node for node in evaluated(site, statement) if id(node) in suspects and isinstance(node, ast.expr)]
    first: Diagnostic | None = None
    forms: list[FixedForm] = []
    for node in sorted(found, key=lambda each: (each.lineno, each.col_offset)):
        message = f"reads a number out of a tensor (device sync): `{short(node)}`"
        try:
            form = fixed_form(site, statement, node)
        except NotProven as reason:
            first = first or Diagnostic(message, declined=str(reason), node=node)
            continue
        if form is not None and site.torch is None:
            return Diagnostic(message, declined=name_taken(), node=node)
        if form is not None and not any(part is node for other in forms for part in ast.walk(other.node)):
            forms.append(form)
    if not forms:
        return first
    message = f"reads a number out of a tensor (device sync): `{short(forms[0].node)}`"
    helpers = tuple({each.name: each for form in forms for each in form.helpers}.values())
    edit = Edit(_replacements(site, statement, forms), imports=site.imports, helpers=helpers)
    return Diagnostic(message, edit=edit, node=forms[0].node)


def _replacements(site: Site, statement: ast.stmt, forms: list[FixedForm]) -> tuple[Replacement, ...]:
    """Two branches, or a choice inside of a statement that has statements in it or binds what the conditions read."""
    from graphmend_codemod.rules.proofs.traceable_equivalents import Twin, replacement

    nested = any(isinstance(part, (ast.IfExp, ast.BoolOp, ast.Lambda)) for part in ast.walk(statement))
    inside = {part.id for part in ast.walk(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    outside = {
        part.id
        for target in getattr(statement, "targets", ())
        for part in ast.walk(target)
        if isinstance(part, ast.Name)
    }
    read = {name for form in forms for condition in form.conditions for name in re.findall(r"[^\W\d]\w*", condition)}
    if nested or not isinstance(statement, _SIMPLE) or not read.isdisjoint(inside - outside):
        texts = [" and ".join([site.compiling, *form.conditions]) for form in forms]
        return tuple(
            replacement(site, statement, Twin(form.node, form.node, form.text, condition))
            for form, condition in zip(forms, texts, strict=True)
        )
    conditions = dict.fromkeys([site.compiling, *(each for form in forms for each in form.conditions)])
    written = {id(form.node): (form.node, form.text) for form in forms}
    comment = _KNOWN if all(form.sized for form in forms) else _COMMENT
    return (in_front(site, [statement], list(conditions), [comment, line_of(site.but(written=written), statement)]),)
