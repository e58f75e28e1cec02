"""An evaluation as one page of HTML that needs nothing else: no network, no fonts, scripts only for search."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup, escape

from graphmend_codemod.core.terminal import printable
from graphmend_codemod.reporting.report import plural
from graphmend_evaluation.evaluation import Evaluation, ModelEvaluation
from graphmend_evaluation.reporting import drawing, view
from graphmend_evaluation.reporting.markdown import compiled_words, eager_words
from graphmend_evaluation.reporting.words import dedented, diff_lines, shortened
from graphmend_evaluation.speed.results import Compared

_LONGEST = 1500
_HUNK_LINES = 120
_HUNK_WIDTH = 500
_PAGE_LENGTH = 2_800_000
_MODEL_LENGTH = 8_000
_LEAST_FOR_HUNKS = 300_000
_OPEN_CHANGES = 12
_PLACES_SHOWN = 60
_MODELS_NAMED = 6


@dataclass(frozen=True)
class _ChangeView:
    """A change on the page; `number` is its place in links, `diff` None where the page would grow too long."""

    number: int
    evidence: view.Evidence
    diff: Markup | None
    is_open: bool

    @property
    def events(self) -> int:
        """Breaks that it removes, in all models together."""
        return sum(removed.events for removed in self.evidence.removed)

    @property
    def models(self) -> frozenset[str]:
        """Models from which it removes one."""
        return frozenset(model for removed in self.evidence.removed for model in removed.models)


def html(evaluation: Evaluation) -> str:
    """The page. It is read as UTF-8 and loads nothing, which its content security policy also forbids."""
    environment = _environment()
    style, script = (_source(name) for name in ("page.css", "page.js"))
    changes = tuple(_changes(evaluation))
    return environment.get_template("page.html.j2").render(
        evaluation=evaluation,
        answer=view.answer(evaluation),
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        changes=changes,
        silent=[each for each in changes if not each.evidence.removed and not each.evidence.change.is_support],
        support=[each for each in changes if not each.evidence.removed and each.evidence.change.is_support],
        change_numbers={each.evidence.change.id: each.number for each in changes},
        elsewhere=view.removed_elsewhere(evaluation),
        reverted=view.reverted_first(evaluation),
        declined=view.declined(evaluation),
        states=[state for state in view.State if any(view.state(model) is state for model in evaluation.models)],
        speed_remarks=view.speed_remarks(evaluation.models),
        timed=tuple(_timed(evaluation.models)),
        places_shown=_PLACES_SHOWN,
        models_named=_MODELS_NAMED,
    )


def _changes(evaluation: Evaluation) -> Iterator[_ChangeView]:
    room = max(_PAGE_LENGTH - _MODEL_LENGTH * len(evaluation.models), _LEAST_FOR_HUNKS)
    for number, each in enumerate(view.evidence(evaluation), 1):
        diff = diff_markup(each.change.diff) if room > 0 else None
        room -= len(diff or "")
        yield _ChangeView(number, each, diff, bool(each.removed) and number <= _OPEN_CHANGES)


def _timed(models: Sequence[ModelEvaluation]) -> Iterator[tuple[str, tuple[drawing.Interval, ...]]]:
    cold: list[tuple[str, Compared]] = []
    steady: list[tuple[str, Compared]] = []
    for model in models:
        first, later = view.cold_start(model.speed), view.steady_state(model.speed)
        cold += [] if first is None else [(model.name, first)]
        steady += [] if later is None else [(model.name, later.latency_s)]
    words = view.cold_words(models)
    for title, found in ((f"{words[:1].upper()}{words[1:]}", cold), ("Steady latency of a call", steady)):
        if found:
            yield title, drawing.intervals(found)


def diff_markup(diff: str) -> Markup:
    """A hunk with `<ins>` and `<del>` around runs of its lines, less the indentation that all lines share."""
    parts: list[Markup] = []
    run: list[str] = []
    mark = ""
    for line in [*dedented(diff_lines(diff, lines=_HUNK_LINES, width=_HUNK_WIDTH)), None]:
        kind = "end" if line is None else line[:1] if line[:1] in "+-@" else " "
        if run and kind != mark:
            tag = {"+": "ins", "-": "del", "@": "i"}.get(mark, "span")
            parts.append(Markup("<{0}>{1}</{0}>").format(Markup(tag), "\n".join(run)))
            run = []
        mark = kind
        run += [] if line is None else [line]
    return Markup("").join(parts)


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("graphmend_evaluation.reporting", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    environment.filters.update(plural=plural, percent=view.percent, wrap=_wrapped, prose=_prose)
    environment.globals.update(
        view=view,
        drawing=drawing,
        diff=diff_markup,
        model_text=_model_text,
        eager_words=eager_words,
        compiled_words=compiled_words,
    )
    return environment


def _model_text(model: ModelEvaluation) -> str:
    """What a search for models looks through."""
    sites = (judged.site for judged in (*model.fixed, *model.left))
    return " ".join(
        dict.fromkeys([model.name, *(word for site in sites for word in (site.path, site.kind, site.gb_id))])
    )


def _finalized(value: Any) -> Any:
    """What stands for a value in the page: nothing foreign gets there with control characters or without end."""
    if isinstance(value, Markup):
        return value
    return shortened(printable(str(value)), _LONGEST)


def _wrapped(text: str) -> Markup:
    """A path or dotted name that may break after its separators."""
    safe = str(escape(_finalized(text)))
    for mark in "/.:":
        safe = safe.replace(mark, f"{mark}<wbr>")
    return Markup(safe)


def _prose(text: str) -> Markup:
    """Words with code between backticks."""
    pieces = str(_finalized(text)).split("`")
    if len(pieces) % 2 == 0:
        return escape("`".join(pieces))
    parts = (
        Markup("<code>{}</code>").format(each) if number % 2 else escape(each) for number, each in enumerate(pieces)
    )
    return Markup("").join(parts)


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _source(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
