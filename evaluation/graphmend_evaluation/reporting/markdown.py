"""An evaluation as GitHub-flavoured Markdown for a pull request, cut to a length from its least important end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from graphmend_codemod.core.terminal import printable
from graphmend_codemod.reporting.report import plural
from graphmend_evaluation.evaluation import Change, Evaluation, JudgedSite, ModelEvaluation, Reverted
from graphmend_evaluation.reporting import quantities, recorded_runs, view
from graphmend_evaluation.reporting.words import cell, code, diff_lines, fenced, plain, tag_text
from graphmend_evaluation.results import BreakSite
from graphmend_evaluation.xla.results import XlaRow

_PLACES_SHOWN = 12
_MODELS_NAMED = 4
_HUNK_LINES = 80
_HUNK_WIDTH = 400
_NOTE_LENGTH = 160


@dataclass(frozen=True)
class _Section:
    """A part of the report. Where there is no room, items go from the end, those of the highest `rank` first.

    `share` is the most of the room that a long part may take, so that something of the next fits as well.
    """

    rank: int
    heading: str
    items: tuple[str, ...]
    noun: str
    between: str = "\n"
    opening: str = ""
    share: float = 1.0

    def text(self, dropped: int = 0) -> str:
        """The section, with a note of what was left out."""
        body = self.between.join(self.items)
        note = f"*{plural(dropped, self.noun)} left out for length: see report.html or report.json.*" if dropped else ""
        head = f"{self.heading}\n\n" if self.heading else ""
        opening = f"{self.opening}\n" if self.opening and self.items else ""
        return f"{head}{opening}{body}" + ("\n\n" if body and note else "") + note


def markdown(evaluation: Evaluation, *, limit: int | None = None) -> str:
    """The report for a pull request: the answer, the models, then evidence.

    With `limit` it has at most that many characters: the least important items go first, and the report says so.
    """
    sections = [section for section in _sections(evaluation) if section.items]
    text = _joined((section, 0) for section in sections)
    if limit is None or len(text) <= limit:
        return text
    return _cut(sections, limit)


def _joined(sections: Iterable[tuple[_Section, int]]) -> str:
    return "\n\n".join(section.text(dropped) for section, dropped in sections) + "\n"


def _cut(sections: list[_Section], limit: int) -> str:
    room = limit - sum(len(section.heading) + len(section.opening) + _NOTE_LENGTH for section in sections)
    answer = [section for section in sections if not section.rank]
    if room < len(_joined((section, 0) for section in answer)):
        return f"{_joined((section, 0) for section in answer)[: max(limit - 1, 0)]}…"
    kept: dict[int, list[str]] = {number: [] for number in range(len(sections))}
    full = False
    for number in sorted(kept, key=lambda each: sections[each].rank):
        end = room * (1 - sections[number].share)
        for item in sections[number].items:
            size = len(item) + len(sections[number].between)
            if size > room and size > limit // 4:
                continue  # one monster does not push out everything behind it
            full = full or size > room
            if full or room - size < end:
                break
            room -= size
            kept[number].append(item)
    return _joined(
        (replace(section, items=tuple(kept[number])), len(section.items) - len(kept[number]))
        for number, section in enumerate(sections)
    )


def _sections(evaluation: Evaluation) -> Iterator[_Section]:
    answer = view.answer(evaluation)
    details = tuple(f"- {each}" for each in answer.details)
    yield _Section(0, "", (f"## graphmend: {answer.headline}", _origin(evaluation)), "line", "\n\n")
    yield _Section(0, "", details, "line")
    problems = tuple(f"- {plain(problem)}" for problem in evaluation.problems)
    yield _Section(1, "### Problems", problems, "problem")
    reverted = tuple(_reverted(each) for each in view.reverted_first(evaluation))
    yield _Section(1, "### Reverted", reverted, "change", "\n\n")
    yield _models(evaluation)
    runs = tuple(recorded_runs.rows(evaluation))
    yield _Section(4, "### Recorded runs", runs, "run", opening=recorded_runs.HEAD)
    yield from _speed_sections(evaluation)
    proven, ineffective, other, support = _evidence(evaluation)
    yield _Section(5, "### Each change, and the break that it removes", proven, "change", "\n\n", share=0.7)
    yield _Section(6, "### Fixes from recorded runs", tuple(recorded_runs.fixes(evaluation)), "fix")
    yield _Section(6, "### Still breaking when recorded", tuple(recorded_runs.left(evaluation)), "place")
    advice = tuple(_advice(evaluation.models))
    yield _Section(6, "### Capture flags that were tried", advice, "line")
    elsewhere = tuple(f"- {_removed(each)}" for each in view.removed_elsewhere(evaluation))
    yield _Section(6, "### Gone without a change at their place", elsewhere, "site")
    yield _Section(6, "### Still breaking", tuple(_left(evaluation)), "site")
    yield _Section(6, "### Changes with no effect measured", ineffective, "change", "\n\n")
    yield _Section(8, "### Changes not exercised by any evaluated model", other, "change", "\n\n")
    yield _Section(9, "### Imports and helpers", support, "change", "\n\n")
    yield _Section(7, "### Declined", tuple(_declined(evaluation)), "rule", "\n\n")
    yield _Section(4, "### Remarks", tuple(f"- {plain(remark)}" for remark in evaluation.remarks), "remark")
    command = fenced([printable(view.reproduce(evaluation))], "sh")
    yield _Section(
        2, "### Reproduce", (command, f"Measured on: {plain(view.measured_on(evaluation))}."), "line", "\n\n"
    )


_COLUMNS = ("model", "breaks", "graphs", "operations", "eager", "compiled", "cold start", "steady latency", "verdict")
_TIMES = slice(6, 8)


def _models(evaluation: Evaluation) -> _Section:
    """A row for each model, those that need attention first; times only where there are any."""
    order = list(view.State)
    models = sorted(evaluation.models, key=lambda each: order.index(view.state(each)))
    titles = [view.cold_words(models) if each == "cold start" else each for each in _COLUMNS]
    table = [titles, ["---", *["---:"] * 3, *["---"] * 5], *map(_model_cells, models)]
    if all(each.speed is None for each in models):
        for cells in table:
            del cells[_TIMES]
    head, line, *rows = map(_row, table)
    return _Section(3, "### Models", tuple(rows), "model", opening=f"{head}\n{line}", share=0.5)


def _origin(evaluation: Evaluation) -> str:
    def ref(name: str, oid: str) -> str:
        return f"{code(name)} ({code(oid[:12])})" if oid and oid != name else code(name)

    base, head = evaluation.base, evaluation.head
    return f"{ref(base.name, base.oid)} against {ref(head.name, head.oid)} of {code(evaluation.repository)}."


def _model_cells(model: ModelEvaluation) -> list[str]:
    cells = [code(model.name)]
    pair = view.counts_of(model)
    if pair is None:
        cells += ["not measured", "", ""]
    else:
        before, after = pair
        cells += [
            f"{old} → {new}"
            for old, new in (
                (before.break_events, after.break_events),
                (before.graphs, after.graphs),
                (before.ops, after.ops),
            )
        ]
    cells += [eager_words(model), compiled_words(model), *_speed_cells(model)]
    state = view.state(model)
    cells.append(f"**{state.value}**" if state in {view.State.PROBLEM, view.State.WORSE} else state.value)
    return cells


def eager_words(model: ModelEvaluation) -> str:
    """Whether eager mode is the same bit for bit."""
    against = model.row.after.against_base
    return "" if against is None else "identical" if against.identical else "changed"


def compiled_words(model: ModelEvaluation) -> str:
    """Whether the compiled model does as the eager one."""
    calls = model.row.after.calls
    if not calls:
        return ""
    return "as eager" if all(call.compiled_problem is None for call in calls) else "not as eager"


def _speed_cells(model: ModelEvaluation) -> Iterator[str]:
    cold, steady = view.cold_start(model.speed), view.steady_state(model.speed)
    yield "" if cold is None else quantities.change_words(cold)
    yield "" if steady is None else quantities.change_words(steady.latency_s)


def _speed_sections(evaluation: Evaluation) -> Iterator[_Section]:
    timed = [(model.name, model.speed) for model in evaluation.models if model.speed is not None]
    rows = [
        _row(
            [
                code(name),
                plain(each.configuration),
                quantities.change_words(each.latency_s),
                f"±{each.latency_s.difference.noise:.1%}",
            ]
        )
        for name, row in timed
        for each in row.steady
    ]
    notes = [f"- {plain(remark)} ({_named(names)})" for remark, names in view.speed_remarks(evaluation.models)]
    head = "| model | configuration | latency of a call | noise |\n|---|---|---|---:|"
    yield _Section(7, "### Steady state by configuration", tuple(rows), "row", opening=head)
    yield _Section(7, "### About the times", tuple(notes), "line")
    xla = tuple(row for model in evaluation.models if model.xla is not None for row in _xla_rows(model.xla))
    head = (
        "| model | mode | FX graphs | HLO graphs | executions a call | transfers a call | says |\n"
        "|---|---|---:|---:|---:|---:|---|"
    )
    yield _Section(7, "### On XLA", xla, "row", opening=head)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(cell, cells))} |"


def _advice(models: Iterable[ModelEvaluation]) -> Iterator[str]:
    for model in models:
        for line in () if model.flags is None else view.flag_words(model.flags):
            yield f"- {code(model.name)}: {plain(line)}"


def _xla_rows(row: XlaRow) -> Iterator[str]:
    for mode in ("openxla", "lazy"):
        before, after = getattr(row.before, mode), getattr(row.after, mode)
        if before is None or after is None:
            continue
        pairs = [
            (before.fx_graphs, after.fx_graphs),
            (before.hlo_graphs, after.hlo_graphs),
            (before.executions, after.executions),
            (before.transfers, after.transfers),
        ]
        cells = [code(row.model), mode, *(f"{old:g} → {new:g}" for old, new in pairs), plain(row.after.words)]
        yield _row(cells)
    for arm, found in (("before", row.before), ("after", row.after)):
        if found.message:
            yield _row([code(row.model), arm, "", "", "", "", plain(found.message)])


def _evidence(evaluation: Evaluation) -> tuple[tuple[str, ...], ...]:
    """Changes that are verified, those without an effect, those not exercised, and imports and helpers."""
    found = view.evidence(evaluation)
    proven = tuple(
        _folded(
            each.change, f" removes {_events(each.removed)}", "\n".join(f"- {_removed(one)}" for one in each.removed)
        )
        for each in found
        if each.removed
    )
    silent = [each for each in found if not each.removed]
    support = tuple(_folded(each.change, "", "") for each in silent if each.change.is_support)
    ineffective, other = (
        tuple(_folded(each.change, "", "") for each in silent if each.effect is wanted and not each.change.is_support)
        for wanted in (view.Effect.NONE, view.Effect.UNREACHED)
    )
    return proven, ineffective, other, support


def _events(removed: Iterable[view.Removed]) -> str:
    removed = list(removed)
    models = {model for each in removed for model in each.models}
    return f"{plural(sum(each.events for each in removed), 'break')} in {plural(len(models), 'model')}"


def _folded(change: Change, summary: str, body: str) -> str:
    where = f"<code>{tag_text(f'{change.path}:{change.base_start}')}</code>"
    function = f" in <code>{tag_text(change.function)}</code>" if change.function else ""
    rules = (
        f" {tag_text(', '.join(change.rules))}" if change.rules else " import or helper" if change.is_support else ""
    )
    diff = fenced(diff_lines(change.diff, lines=_HUNK_LINES, width=_HUNK_WIDTH), "diff")
    parts = [
        f"<details><summary>{where}{function}:{rules}{summary}</summary>",
        *filter(None, [body]),
        diff,
        "</details>",
    ]
    return "\n\n".join(parts)


def _removed(removed: view.Removed) -> str:
    return f"{_site(removed.site, removed.rule)}; {plural(removed.events, 'break')} in {_named(removed.models)}"


def _site(site: BreakSite, rule: str | None) -> str:
    words = [code(f"{site.path}:{site.line}")]
    if site.function:
        words.append(f"in {code(site.function)}")
    kind = plain(site.kind or site.reason)
    known = " ".join(filter(None, [site.gb_id, rule or ""]))
    text = f"{' '.join(words)}: {kind}" + (f" ({plain(known)})" if known else "")
    return f"{text}: {code(site.source)}" if site.source.strip() else text


def _named(models: tuple[str, ...]) -> str:
    shown = ", ".join(code(model) for model in models[:_MODELS_NAMED])
    more = len(models) - _MODELS_NAMED
    return f"{shown} and {plural(more, 'model')} more" if more > 0 else shown


def _reverted(reverted: Reverted) -> str:
    word = "kept with `--keep`" if reverted.kept else "reverted"
    cause = f"- **{word}**, because {plain(reverted.cause.value)}: {code(reverted.model)}: {plain(reverted.detail)}"
    return _folded(reverted.change, " kept all the same" if reverted.kept else " reverted", cause)


def _left(evaluation: Evaluation) -> Iterator[str]:
    found: dict[tuple[str, int, str], list[tuple[str, JudgedSite]]] = {}
    for model in evaluation.models:
        for judged in model.left:
            site = judged.site
            found.setdefault((site.path, site.line, site.kind), []).append((model.name, judged))
    lines = []
    for each in found.values():
        judged = each[0][1]
        events = sum(one.site.events for _, one in each)
        reason = f". {plain(judged.reason)}" if judged.reason else ""
        models = _named(tuple(name for name, _ in each))
        lines.append((events, f"- {_site(judged.site, judged.rule)}; {plural(events, 'break')} in {models}{reason}"))
    yield from (line for _, line in sorted(lines, key=lambda item: -item[0]))


def _declined(evaluation: Evaluation) -> Iterator[str]:
    for each in view.declined(evaluation):
        summary = f"{tag_text(each.rule)} {tag_text(each.slug)}, {plural(each.sites, 'site')}"
        lines = []
        for reason, sites in each.reasons:
            places = ", ".join(code(f"{site.path}:{site.line}") for site in sites[:_PLACES_SHOWN])
            more = f" and {len(sites) - _PLACES_SHOWN} more" if len(sites) > _PLACES_SHOWN else ""
            lines.append(f"- {plain(reason)}: {places}{more}")
        yield "\n\n".join([f"<details><summary>{summary}</summary>", "\n".join(lines), "</details>"])
