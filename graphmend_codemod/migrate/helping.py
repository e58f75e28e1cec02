"""What would help where a migration improved nothing: the next things to try, the most likely first."""

from __future__ import annotations

from collections.abc import Iterator

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.migrate.outcome import Migration
from graphmend_codemod.reporting.report import plural


def what_would_help(outcome: Migration) -> Iterator[str]:
    """Sentences without an end. Where something was fixed only what recorded runs may add to it; none where nothing was
    found."""
    yield from _recording(outcome)
    if outcome.commits or not (outcome.remaining or outcome.taken_back):
        return
    still = sum(each.harmless for each in outcome.taken_back)
    if still:
        yield (
            f"{still} fix{'es' if still > 1 else ''} did not remove a break in the way that the model was run: a "
            "factory whose module is in training mode, or gets other inputs, may show more; --keep keeps such fixes"
        )
    unsafe = sum(each.edit is not None and each.safety is Safety.UNSAFE for each in outcome.remaining)
    if unsafe and not outcome.unsafe_fixes:
        yield f"--unsafe-fixes would fix {plural(unsafe, 'site')}: look at `graphmend fix --unsafe-fixes --diff`"
    named = [each for each in outcome.remaining if each.declined and "annotate" in each.declined]
    if named:
        yield f"{plural(len(named), 'site')} without a known type: add the annotations that the reasons name"
    yield "`graphmend trace -- python your_script.py` shows which sites break in a real run, and what they cost"


def _recording(outcome: Migration) -> Iterator[str]:
    broken = sum(bool(each.after.breaks) for each in outcome.models)
    if broken and not outcome.recorded:
        what = "the model that still breaks" if broken == 1 else f"the {broken} models that still break"
        yield f"--record runs {what} once more and fixes what only a run can tell"
