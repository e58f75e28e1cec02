"""The evaluation stage: what `torch.compile` makes of a model before and after a migration.

Only child processes import torch; `isolation` and `results` are free of it and serve the parent. What a user's own code
may call is here by name: `trace` and `assert_no_graph_breaks`, which are loaded when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphmend_evaluation.tracing.assertions import assert_no_graph_breaks
    from graphmend_evaluation.tracing.live import trace

__all__ = ["assert_no_graph_breaks", "trace"]


def __getattr__(name: str) -> Any:
    if name == "trace":
        from graphmend_evaluation.tracing.live import trace

        return trace
    if name == "assert_no_graph_breaks":
        from graphmend_evaluation.tracing.assertions import assert_no_graph_breaks

        return assert_no_graph_breaks
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
