"""Which diagnostic speaks for a site, and which findings are left out for the sake of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphmend_codemod.core.findings import Finding, Safety, Span
from graphmend_codemod.rules.framework.edits import with_inner
from graphmend_codemod.rules.framework.rule import About, Diagnostic, Match, Rule
from graphmend_codemod.rules.framework.site import Site

# What speaks for a site that nothing has a safe fix for, first to last.
_OPERATOR = 0  # an opaque operator, where these are asked for
_REASON = 1  # why a fix is declined; why an opaque operator that is asked for cannot be made
_OFFER = 2  # an opaque operator that `--opaque` would write
_ADVICE = 3
_NO_OFFER = 4  # why `--opaque` would not help either


def first_of(site: Site, asked: Sequence[tuple[Rule, Match]]) -> tuple[Rule, Diagnostic] | None:
    """The diagnostic of the first rule that has an edit, or else of the first that has a reason.

    A site belongs to one rule whatever is selected: ignoring a rule does not hand its sites to a more general one.
    Opaque operators come last: where they are not asked for, the reason why nothing else fixes the site says more.
    A rule that `yields` speaks only where no other one has a safe fix; where the header of that fix asks what it would
    ask first, it speaks for the author's statement behind the compile path.

    Questions come in the order of `best_rank`: those whose answers most often do not count, and cost most, are last.
    """
    found: dict[int, tuple[Rule, Diagnostic]] = {}
    waiting: tuple[Rule, Diagnostic] | None = None
    for number, (rule, match) in enumerate(asked):
        if found and min(found) < best_rank(rule, site.settings.opaque):
            break
        diagnostic = match(site, site.node)
        if diagnostic is None:
            continue
        if diagnostic.edit is not None and rule.safety is not Safety.OPAQUE:
            if rule.yields:
                waiting = waiting or (rule, diagnostic)
            elif waiting is None or rule.safety_of(diagnostic) is Safety.SAFE:
                behind = waiting or _yielding(site, asked[number + 1 :])
                return rule, _both(diagnostic, behind[1]) if behind else diagnostic
        rank = _rank(rule, diagnostic, site.settings.opaque)
        found[rank] = _with_reason(found[rank], (rule, diagnostic)) if rank in found else (rule, diagnostic)
    return waiting or (found[min(found)] if found else None)


def _with_reason(one: tuple[Rule, Diagnostic], other: tuple[Rule, Diagnostic]) -> tuple[Rule, Diagnostic]:
    """The first of two verdicts without a fix, with the reason why the code is no operator if only that is added.

    Of a diagnostic that says nothing else, and another one, it is the other that speaks.
    """
    bare = one[1].about is About.OPERATOR
    (rule, diagnostic), (_, later) = (other, one) if bare else (one, other)
    both = f"{diagnostic.declined}; {later.declined}"
    if later.about is About.RECORDED_RUN and diagnostic.declined is not None:
        return rule, diagnostic._replace(declined=both)
    known = diagnostic.about in (About.OPERATOR, About.BOTH)
    if later.about is not About.OPERATOR or diagnostic.declined is None or known:
        return one
    return rule, diagnostic._replace(declined=both, about=About.BOTH)


def best_rank(rule: Rule, asked: bool) -> int:
    """The least rank that an answer of a rule may have; `asked` is whether opaque operators are wanted."""
    if rule.safety is Safety.ADVICE:
        return _ADVICE
    return _OFFER if rule.safety is Safety.OPAQUE and not asked else _OPERATOR


def _yielding(site: Site, asked: Sequence[tuple[Rule, Match]]) -> tuple[Rule, Diagnostic] | None:
    """The first fix of a rule that yields."""
    found = ((rule, match(site, site.node)) for rule, match in asked if rule.yields)
    return next(((rule, each) for rule, each in found if each is not None and each.edit is not None), None)


def _both(diagnostic: Diagnostic, behind: Diagnostic) -> Diagnostic:
    """A fix with another one in the author's statement that stays behind its compile path, where they fit together."""
    edit = with_inner(diagnostic.edit, behind.edit) if diagnostic.edit is not None and behind.edit is not None else None
    return diagnostic if edit is None else diagnostic._replace(edit=edit)


def _rank(rule: Rule, diagnostic: Diagnostic, asked: bool) -> int:
    if rule.safety is not Safety.OPAQUE:
        return _ADVICE if rule.safety is Safety.ADVICE else _REASON
    if diagnostic.edit is not None:
        return _OPERATOR if asked else _OFFER
    return _REASON if asked else _NO_OFFER


def uncovered(findings: list[Finding], *, opaque: bool) -> list[Finding]:
    """The findings without advice, reasons and opaque operators on text for which another one writes a compile path.

    Opaque operators count only where they are asked for; elsewhere nothing is written, so other findings stay.
    """
    edits = [each.edit for each in findings if each.edit is not None and (opaque or each.safety is not Safety.OPAQUE)]
    edited = [each.span for edit in edits for each in edit.replacements]
    eager = [each.span for edit in edits if edit.writes_path for each in edit.replacements]
    plain = [each.edit for each in findings if each.edit is not None and each.safety is not Safety.OPAQUE]
    traced = [each.span for edit in plain if edit.writes_path for each in edit.replacements]

    def covered(finding: Finding) -> bool:
        if finding.edit is not None:
            return finding.safety is Safety.OPAQUE and _is_inside(finding.span, traced)
        return _is_inside(finding.span, edited if finding.safety is Safety.ADVICE else eager)

    return [finding for finding in findings if not covered(finding)]


def _is_inside(span: Span, around: Iterable[Span]) -> bool:
    start, end = (span.start_line, span.start_column), (span.end_line, span.end_column)
    return any(
        (each.start_line, each.start_column) <= start and end <= (each.end_line, each.end_column) for each in around
    )
