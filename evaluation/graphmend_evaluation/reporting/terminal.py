"""An evaluation in a few lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from graphmend_codemod.core.colour import Paint
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.reporting.report import plural
from graphmend_evaluation.evaluation import Evaluation, ModelEvaluation
from graphmend_evaluation.reporting import quantities, view

_MODELS_SHOWN = 40
_WIDTH = 200


def terminal_lines(evaluation: Evaluation, paint: Paint) -> Iterator[str]:
    """The answer, one line a model (the worst first where there are many), what was reverted, and remarks."""
    answer = view.answer(evaluation)
    yield paint.bold(f"{answer.headline[:1].upper()}{answer.headline[1:]}.")
    if answer.details:
        yield f"  {'; '.join(answer.details)}"
    models = list(evaluation.models)
    if len(models) > _MODELS_SHOWN:
        order = list(view.State)
        models.sort(key=lambda each: order.index(view.state(each)))
    for model in models[:_MODELS_SHOWN]:
        yield from _model_lines(model, paint)
    if len(models) > _MODELS_SHOWN:
        yield f"  and {plural(len(models) - _MODELS_SHOWN, 'model')} more, all of them in the report"
    for reverted in view.reverted_first(evaluation):
        change = reverted.change
        word = "Kept all the same" if reverted.kept else "Reverted"
        yield paint.yellow(_line(f"{word}: {change.path}:{change.base_start} {' '.join(change.rules)}".rstrip()))
        yield _line(f"  {reverted.cause.value}: {reverted.model}: {reverted.detail}")
    for remark in evaluation.remarks:
        yield _line(f"Note: {remark}")


def _model_lines(model: ModelEvaluation, paint: Paint) -> Iterator[str]:
    pair = view.counts_of(model)
    words = "not measured" if pair is None else f"graph breaks {pair[0].break_events} -> {pair[1].break_events}"
    if pair is not None:
        words += f", graphs {pair[0].graphs} -> {pair[1].graphs}"
    cold, steady = view.cold_start(model.speed), view.steady_state(model.speed)
    if cold is not None:
        words += f", {view.cold_words([model])} {quantities.change_words(cold)}"
    if steady is not None:
        words += f", steady {quantities.change_words(steady.latency_s)}"
    state = view.state(model)
    good = state in {view.State.FIXED, view.State.WHOLE}
    shown = paint.green(state.value) if good else paint.yellow(state.value)
    yield f"  {_line(f'{model.name}: {words}')}, {shown}"
    for problem in model.row.problems:
        yield paint.yellow(_line(f"    {problem}"))


def _line(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
