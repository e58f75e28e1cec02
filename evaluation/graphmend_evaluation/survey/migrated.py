"""The dated page of `graphmend migrate --huggingface`: every model of its report, before and after.

    python -m graphmend_evaluation.survey.migrated .git/graphmend/report-BRANCH/evaluation/report.json

Exit codes: 0 written, 1 written and a model has another eager result, 2 the report cannot be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphmend_codemod.reporting.markdown import code
from graphmend_codemod.reporting.report import plural
from graphmend_evaluation.evaluation import Evaluation, ModelEvaluation
from graphmend_evaluation.reporting.words import cell, plain
from graphmend_evaluation.results import Counts, from_json

_PREFIX = "huggingface:transformers.models."
_LONGEST = 160


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m graphmend_evaluation.survey.migrated", description=__doc__)
    parser.add_argument("report", type=Path, help="report.json of an evaluation")
    parser.add_argument("--results", type=Path, default=Path("evaluation/survey"), help="[default: %(default)s]")
    options = parser.parse_args(arguments)
    try:
        evaluation = from_json(Evaluation, json.loads(options.report.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        print(f"migrated: {options.report} is not a report.json of graphmend: {error}", file=sys.stderr)
        return 2
    options.results.mkdir(parents=True, exist_ok=True)
    page = options.results / f"{evaluation.date.partition('T')[0]}-migrate.md"
    page.write_text(markdown(evaluation), encoding="utf-8")
    print(f"{answer(evaluation)}\nThe page is {page}")
    return 1 if any(_eager(each).startswith("CHANGED") for each in evaluation.models) else 0


def answer(evaluation: Evaluation) -> str:
    """The result in one sentence."""
    counted = [each for each in evaluation.models if _counts(each) is not None]
    types = {_type(each) for each in counted}
    before, after = evaluation.breaks
    compared = [each.row.after.against_base for each in counted if each.row.after.against_base is not None]
    same = sum(each.identical for each in compared)
    whole = [sum(counts[arm].whole for each in counted if (counts := _counts(each))) for arm in (0, 1)]
    return (
        f"{before} -> {after} graph breaks in {plural(len(counted), 'model')} of {plural(len(types), 'type')}; "
        f"{whole[0]} -> {whole[1]} of them run as one graph; "
        f"eager results identical bit for bit in {same} of {len(compared)}; "
        f"{plural(len(evaluation.reverted), 'change')} reverted."
    )


def markdown(evaluation: Evaluation) -> str:
    """The page."""
    return "\n".join(_lines(evaluation)) + "\n"


def _lines(evaluation: Evaluation) -> Iterator[str]:
    machine = evaluation.machine
    versions = ", ".join(f"{name} {version}" for name, version in evaluation.versions)
    yield f"# `graphmend migrate --huggingface`, {evaluation.date.partition('T')[0]}"
    yield ""
    yield (
        f"{versions}, {machine.processor}, {machine.cores} cores; {evaluation.seconds / 60:.0f} minutes of wall time, "
        f"load average {' to '.join(f'{load:.1f}' for load in machine.load)}. Small models with random weights, "
        "several calls each, capture flags off. Only files of the folders below were fixed."
    )
    yield ""
    yield f"**{answer(evaluation)}**"
    yield ""
    yield "| model | breaks | graphs | eager | problems |"
    yield "| --- | --- | --- | --- | --- |"
    unmeasured = []
    for each in sorted(evaluation.models, key=lambda model: model.name):
        if (counts := _counts(each)) is None:
            unmeasured.append(each)
            continue
        old, new = counts
        problems = plain("; ".join(each.row.problems), _LONGEST)
        cells = (f"{old.break_events} -> {new.break_events}", f"{old.graphs} -> {new.graphs}", _eager(each), problems)
        yield "| " + " | ".join(cell(text) for text in (code(_short(each)), *cells)) + " |"
    if evaluation.reverted:
        yield from ("", "## Reverted", "")
        for found in evaluation.reverted:
            place = code(f"{found.change.path}:{found.change.base_start}")
            yield f"- {place}: {found.cause.value} ({code(found.model)}: {plain(found.detail, _LONGEST)})"
    if unmeasured:
        yield from ("", "## Not measured", "")
        for each in unmeasured:
            yield f"- {code(_short(each))}: {plain('; '.join(each.row.problems), _LONGEST)}"


def _counts(model: ModelEvaluation) -> tuple[Counts, Counts] | None:
    before, after = model.row.before.counts, model.row.after.counts
    return None if before is None or after is None else (before, after)


def _eager(model: ModelEvaluation) -> str:
    compared = model.row.after.against_base
    if compared is None:
        return "not compared"
    return "identical" if compared.identical else "CHANGED"


def _short(model: ModelEvaluation) -> str:
    return model.name.removeprefix(_PREFIX)


def _type(model: ModelEvaluation) -> str:
    return _short(model).partition(".")[0]


if __name__ == "__main__":
    sys.exit(main())
