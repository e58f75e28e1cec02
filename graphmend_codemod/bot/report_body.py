"""The body of a pull request: the answer first, then the evidence, then how to look again and how to stop the bot."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING

from graphmend_codemod import __version__
from graphmend_codemod.bot.split_markdown import split
from graphmend_codemod.core.findings import Finding, Safety, why_left
from graphmend_codemod.core.settings import PullRequestSettings
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.migrate.commit_message import breaks, measured_with
from graphmend_codemod.migrate.outcome import Migration
from graphmend_codemod.migrate.report import headline
from graphmend_codemod.reporting.markdown import code, escaped
from graphmend_codemod.reporting.report import plural

if TYPE_CHECKING:
    from graphmend_evaluation.evaluation import Evaluation

_REASONS = 5
_FITTINGS, _LEAST = 10, 1_000
MOST_PARTS = 8
_ELSEWHERE = "see the full report in the checks of the last commit or in the comments"
_MORE = "\n\n(The rest does not fit here; `graphmend migrate` lists all.)\n"
_BREATH = "\u200b"  # between a sign and a word, so that nobody is called and nothing is linked


@dataclass(frozen=True)
class _Listing:
    """A list that may be cut. `rows` are its items, folded away under `title`."""

    title: str
    rows: tuple[str, ...]


def title(outcome: Migration, settings: PullRequestSettings) -> str:
    """The title, on one line."""
    if settings.title is not None:
        text = Template(settings.title).substitute(_names(outcome))
    else:
        text = f"Remove {plural(outcome.sites, 'graph break site')} in {plural(outcome.changed_files, 'file')}"
    return " ".join(text.split())


@dataclass(frozen=True)
class Body:
    """A body, and whether it holds less than there is to say."""

    text: str
    cut: bool


def body(outcome: Migration, settings: PullRequestSettings, *, limit: int, last_line: str = "") -> Body:
    """The whole body in at most `limit` bytes of UTF-8, which ends with `last_line`.

    With an evaluation, that one's report is the evidence; without, the migration's own values are. What does not fit is
    cut between items of the long lists, and the body says so.
    """
    evaluation = outcome.measured.evaluation
    if evaluation is not None and evaluation.models:
        return _evaluated(evaluation, outcome, settings, limit, last_line)
    longest = max((len(listing.rows) for listing in _listings(outcome)), default=0)
    shown, beyond = 0, longest + 1
    while beyond - shown > 1:
        middle = (shown + beyond) // 2
        if _size(_whole(outcome, settings, middle, last_line)) <= limit:
            shown = middle
        else:
            beyond = middle
    whole = _whole(outcome, settings, shown, last_line)
    return Body(_at_most(limit, whole, last_line), cut=shown < longest or _size(whole) > limit)


def parts(outcome: Migration, *, limit: int) -> tuple[str, ...]:
    """All that there is to say, in at most `MOST_PARTS` parts of at most `limit` bytes of UTF-8."""
    evaluation = outcome.measured.evaluation
    if evaluation is not None and evaluation.models:
        from graphmend_evaluation.reporting import markdown

        text = markdown(evaluation)
    else:
        sections = [f"**{headline(outcome)}.** {_promise(outcome)}", *_models(outcome), *_rules(outcome)]
        sections += ["\n".join([f"### {each.title}", "", *each.rows]) for each in _listings(outcome)]
        text = "\n\n".join(sections)
    found = split(text, limit - len(_MORE))
    return found if len(found) <= MOST_PARTS else (*found[: MOST_PARTS - 1], found[MOST_PARTS - 1] + _MORE)


def _evaluated(
    evaluation: Evaluation, outcome: Migration, settings: PullRequestSettings, limit: int, last_line: str
) -> Body:
    from graphmend_evaluation.reporting import markdown

    def framed(report: str, note: str = "") -> str:
        # Its parts are below ours.
        return _framed([report.strip() + note, _reproduce(outcome), _stop(settings)], outcome, settings, last_line)

    text = framed(markdown(evaluation))
    if _size(text) <= limit:
        return Body(text, cut=False)
    # That report counts characters, a forge may count bytes.
    room = limit
    for _ in range(_FITTINGS):
        excess = _size(text) - limit
        if excess <= 0:
            break
        room = max(_LEAST, min(room, len(text)) - excess)
        text = framed(markdown(evaluation, limit=room), f"\n\n*{_ELSEWHERE.capitalize()}.*")
    return Body(_at_most(limit, text, last_line), cut=True)


def _at_most(limit: int, text: str, last_line: str) -> str:
    if _size(text) <= limit:
        return text
    # A template, or hundreds of models: only its beginning fits.
    note = f"\n\n(The rest does not fit here.)\n\n{last_line}\n"
    room = max(0, limit - _size(note))
    return text.encode("utf-8")[:room].decode("utf-8", "ignore").rpartition("\n")[0] + note


def _size(text: str) -> int:
    return len(text.encode("utf-8"))


def nothing_left(outcome: Migration) -> str:
    """Why the bot closes its pull request."""
    return (
        f"Nothing left to fix: `graphmend` finds no fixable break sites on {code(outcome.base.name)} at "
        f"{outcome.base.oid[:12]}, so this pull request is closed. A new one is opened when there are."
    )


def left_alone(branch: str) -> str:
    """What the bot says when it finds commits that are not its own."""
    return (
        f"Branch {code(branch)} has commits by others, so `graphmend` no longer updates it and overwrites nothing. "
        "To let `graphmend` continue, delete the branch (you may merge or close this pull request first); the next "
        "run starts again."
    )


def _whole(outcome: Migration, settings: PullRequestSettings, rows: int, last_line: str) -> str:
    parts = [f"**{headline(outcome)}.** {_promise(outcome)}", *_models(outcome), *_rules(outcome)]
    parts += [_folded(listing, rows) for listing in _listings(outcome)]
    parts += [_reproduce(outcome), _stop(settings)]
    return _framed(parts, outcome, settings, last_line)


def _framed(parts: Iterable[str], outcome: Migration, settings: PullRequestSettings, last_line: str) -> str:
    report = "\n\n".join(parts)
    if settings.body is not None:
        report = Template(settings.body).substitute(_names(outcome), report=report)
    return f"{report.rstrip()}\n\n{last_line}\n"


def _names(outcome: Migration) -> dict[str, object]:
    return {"repository": outcome.repository, "sites": outcome.sites, "files": outcome.changed_files}


def _promise(outcome: Migration) -> str:
    unsafe = sum(one.safety is Safety.UNSAFE for commit in outcome.commits for one in commit.applied)
    opaque = sum(one.safety is Safety.OPAQUE for commit in outcome.commits for one in commit.applied)
    if opaque and not unsafe:
        return (
            f"Outside `torch.compile` nothing changes. {plural(opaque, 'site')} became part of an opaque operator: one "
            "graph, which the compiler cannot look into there."
        )
    if unsafe:
        return (
            f"{plural(unsafe, 'site')} got an unsafe fix: review these with care. The other fixes do not "
            "change eager mode."
        )
    return "Outside `torch.compile` nothing changes: outputs, gradients, exceptions, messages and state are identical."


def _models(outcome: Migration) -> Iterator[str]:
    yield "### Models"
    if not outcome.models:
        yield "No model was measured. List models under `models` in `[tool.graphmend]` of `pyproject.toml`."
        return
    rows = ["| model | breaks before | breaks after | one graph |", "|---|---:|---:|---|"]
    for result in outcome.models:
        cells = (_code(result.model), breaks(result.before), breaks(result.after), result.after.one_graph)
        rows.append(f"| {' | '.join(cells)} |")
    yield "\n".join(rows)
    problems = [f"- {_code(one.model)}: {_said(problem)}" for one in outcome.models for problem in one.problems]
    if problems:
        yield "\n".join(problems)
    if measured_with(outcome.models):
        yield f"Measured{measured_with(outcome.models)}."


def _rules(outcome: Migration) -> Iterator[str]:
    yield "### What changes"
    rows = ["| rule | what it does | cost when compiled | sites | files |", "|---|---|---|---:|---:|"]
    for commit in outcome.commits:
        rule = commit.rule
        cells = [f"{rule.code} {rule.slug}", _said(rule.title), rule.contract.cost.value]
        rows.append(f"| {' | '.join(cells)} | {len(commit.applied)} | {len(commit.files)} |")
    yield "\n".join(rows)
    yield "One commit per rule; each message explains why it is safe."
    if outcome.remaining:
        yield f"### Not fixed: {plural(len(outcome.remaining), 'site')}"
        yield "\n".join(_reasons(outcome))


def _reasons(outcome: Migration) -> Iterator[str]:
    for (rule, slug), reasons in outcome.left_by_rule.items():
        yield f"- {rule} {slug}: {reasons.total()}"
        shown = reasons.most_common(_REASONS)
        yield from (f"  - {count} x {_said(reason)}" for reason, count in shown)
        if len(reasons) > len(shown):
            yield f"  - {reasons.total() - sum(count for _, count in shown)} x other reasons"


def _listings(outcome: Migration) -> Sequence[_Listing]:
    found = []
    for commit in outcome.commits:
        rows = tuple(f"- {_site(one)}" for one in commit.applied)
        found.append(_Listing(f"{commit.rule.code}: {plural(len(rows), 'site')} fixed", rows))
    left = tuple(f"- {one.code} {_site(one)}. Not applied: {_said(why_left(one))}" for one in outcome.remaining)
    found.append(_Listing(f"{plural(len(left), 'site')} not fixed", left))
    unread = tuple(f"- {_code(one.path)}: {_said(one.message)}" for one in outcome.problems)
    found.append(_Listing(f"{plural(len(unread), 'file')} not checked", unread))
    return [listing for listing in found if listing.rows]


def _folded(listing: _Listing, shown: int) -> str:
    rows = list(listing.rows[:shown])
    if len(rows) < len(listing.rows):
        rows.append(f"- ... and {len(listing.rows) - len(rows)} more, which do not fit here; {_ELSEWHERE}")
    items = "\n".join(rows)
    return f"<details><summary>{listing.title}</summary>\n\n{items}\n\n</details>"


def _site(finding: Finding) -> str:
    function = f" in {_code(finding.function)}" if finding.function else ""
    return f"{_code(f'{finding.path}:{finding.span.start_line}')}{function}: {_said(finding.message)}"


def _reproduce(outcome: Migration) -> str:
    models = "".join(f" --model {shlex.quote(result.model)}" for result in outcome.models)
    command = f"graphmend migrate --base {shlex.quote(outcome.base.oid)}{models}"
    return (
        f"### Reproduce\n\nMade by graphmend {__version__} from {_code(outcome.base.name)}. To reproduce it "
        f"on your machine, on a new branch:\n\n    {printable(command)}"
    )


def _stop(settings: PullRequestSettings) -> str:
    return (
        "### Change or stop the bot\n\n"
        "In `pyproject.toml`, `[tool.graphmend]` chooses rules (`ignore`), files (`exclude`) and models, and "
        "`# graphmend: ignore[CODE]` at the end of a line keeps that line. Close this pull request, and it is not "
        "opened again for these findings. To stop for good:\n\n"
        "    [tool.graphmend.pull-request]\n    enabled = false\n\n"
        f"The branch {_code(settings.branch)} is written again when its base moves. Push a commit of your own to it, "
        "and the bot leaves it alone."
    )


def _said(words: str) -> str:
    """Text outside of code spans may call nobody and link nothing."""
    pieces = escaped(printable(words)).split("`")
    return "`".join(
        piece if index % 2 else piece.replace("@", f"@{_BREATH}").replace("#", f"#{_BREATH}")
        for index, piece in enumerate(pieces)
    )


def _code(words: str) -> str:
    """A code span; in a table a bar would end the cell."""
    return code(printable(words)).replace("|", "\\|")
