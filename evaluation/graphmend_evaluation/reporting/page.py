"""An evaluation as one page of HTML that needs nothing else: no network, no fonts, scripts only for search."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jinja2
from markupsafe import Markup

from graphmend_evaluation.evaluation import Evaluation, ModelEvaluation
from graphmend_evaluation.reporting import drawing, markup, quantities, view
from graphmend_evaluation.reporting.markdown import compiled_words, eager_words
from graphmend_evaluation.speed.results import Compared

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
    silent = [each for each in changes if not each.evidence.removed and not each.evidence.change.is_support]
    return environment.get_template("page.html.j2").render(
        evaluation=evaluation,
        answer=view.answer(evaluation),
        style=Markup(style),
        script=Markup(script),
        policy=markup.policy(style, script),
        changes=changes,
        ineffective=[each for each in silent if each.evidence.effect is view.Effect.NONE],
        silent=[each for each in silent if each.evidence.effect is view.Effect.UNREACHED],
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
        diff = markup.diff_markup(each.change.diff) if room > 0 else None
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


@functools.cache
def _environment() -> jinja2.Environment:
    environment = markup.environment(jinja2.PackageLoader("graphmend_evaluation.reporting", ""))
    environment.filters.update(percent=quantities.percent)
    environment.globals.update(
        view=view,
        quantities=quantities,
        drawing=drawing,
        diff=markup.diff_markup,
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


def _source(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
