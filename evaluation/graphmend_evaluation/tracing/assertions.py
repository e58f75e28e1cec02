"""A test's way to say that a model compiles to one graph, with a message that names what broke and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from graphmend_codemod.core.settings import load_settings
from graphmend_codemod.reporting.report import plural
from graphmend_codemod.trace import break_text, text
from graphmend_codemod.trace.document import Trace
from graphmend_codemod.trace.join import Answer, Joined, Remedy, join
from graphmend_evaluation.tracing.live import trace


def assert_no_graph_breaks(model: Callable[..., Any], *inputs: Any, **named: Any) -> None:
    """Compile `model` with backend `eager`, call it once, and raise `AssertionError` for what broke its graph.

    What was compiled before is forgotten, first and last. Exceptions of the model itself are let through.
    """
    __tracebackhide__ = True
    root = load_settings(Path()).root
    torch.compiler.reset()
    try:
        with trace(root=root) as recorded:
            torch.compile(model, backend="eager")(*inputs, **named)
    finally:
        torch.compiler.reset()
    complain(recorded.result, root)


def complain(trace: Trace, root: Path) -> None:
    """Raise `AssertionError` when a trace has a break or a function without a graph."""
    __tracebackhide__ = True
    if not trace.sites and not trace.skipped:
        return
    settings = load_settings(root)
    raise AssertionError("\n".join(_message(join(trace, settings, cache=False))))


def _message(joined: Joined) -> Iterator[str]:
    found = joined.trace
    yield f"{plural(found.totals.events, 'graph break')} at {plural(found.totals.sites, 'site')}"
    for site, answer in zip(found.sites, joined.answers, strict=True):
        where = site.shown
        yield f"{where.path}:{where.line} in {where.function}: {site.gb_id} {site.kind}"
        if site.source.strip():
            yield f"    {site.source.strip()}"
        yield f"  {_way_out(answer)}"
        if site.gb_id:
            yield f"  {break_text.page(site.gb_id)}"
    for skipped in found.skipped:
        yield f"{skipped.place.path}:{skipped.place.line} {skipped.place.function} has no graph: {skipped.reason}"
    yield text.summary(joined)


def _way_out(answer: Answer) -> str:
    if answer.remedy is Remedy.FIX:
        return f"{answer.code} fixes it: run `graphmend fix`"
    if answer.remedy is Remedy.UNSAFE:
        return f"{answer.code} fixes it: look at `graphmend fix --unsafe-fixes --diff`"
    if answer.remedy is Remedy.OPAQUE:
        return f"{answer.code} keeps it inside the graph: look at `graphmend fix --opaque --diff`"
    reason = f"{answer.code} does not apply: {answer.reason}" if answer.reason else ""
    return "; ".join(filter(None, (reason, *answer.steps[:1]))) or "no rule knows it"
