"""The answer to an order: a row, with texts that are safe to show and not too long."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from graphmend_codemod.fleet.order import Order
from graphmend_codemod.fleet.rows import Row
from graphmend_codemod.reporting.report import printable

_MANY = 20
_LONG = 500


def answer(
    order: Order,
    status: str,
    *,
    sites: int = 0,
    fixed: int = 0,
    breaks: tuple[int, int] | None = None,
    pull_request: str = "",
    error: str = "",
    left: Iterable[str] = (),
    remarks: Iterable[str] = (),
) -> Row:
    """The row. `left` has one `CODE: reason` for each site that stays."""
    before, after = breaks or (None, None)
    reasons = Counter(printable(reason)[:_LONG] for reason in left)
    return Row(
        order.name,
        order.location,
        order.options.action,
        status,
        sites=sites,
        fixed=fixed,
        breaks_before=before,
        breaks_after=after,
        pull_request=pull_request,
        error=printable(error)[:_LONG],
        left=tuple(reasons.most_common(_MANY)),
        remarks=tuple(dict.fromkeys(printable(text)[:_LONG] for text in remarks))[:_MANY],
    )


def arguments(order: Order) -> argparse.Namespace:
    """The order's options as the command line has them."""
    told = order.options
    return argparse.Namespace(
        select=list(told.select),
        ignore=list(told.ignore),
        unsafe_fixes=told.unsafe_fixes,
        config=None if told.config is None else Path(told.config),
    )
