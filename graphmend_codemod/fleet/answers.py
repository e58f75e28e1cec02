"""The result row of a job, with texts escaped and cut to length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from graphmend_codemod.core.settings import Overrides, Settings, overridden_settings
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.fleet.jobs import Order
from graphmend_codemod.fleet.results import Row
from graphmend_codemod.rules.framework.retired import known_codes

_MANY = 20
_LONG = 500
# In the folder of a run there is the copy of the repository, or of a snapshot its `files`.
_OURS = re.compile(
    r"/[^\s:'\"`]*/graphmend-\w+-[a-z0-9_]{8}(?:/tmp)?(?:/files)?(?:/[^/\s:'\"`]+)?/?(?P<inside>[^\s:'\"`]*)"
)


def answer(
    order: Order,
    status: str,
    *,
    sites: int = 0,
    fixed: int = 0,
    fixable: int = 0,
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
        fixable=fixable,
        breaks_before=before,
        breaks_after=after,
        pull_request=pull_request,
        error=_shown(error),
        left=tuple(reasons.most_common(_MANY)),
        remarks=tuple(dict.fromkeys(_shown(text) for text in remarks))[:_MANY],
    )


def without_temporary_folders(text: str) -> str:
    """The text with paths inside of the repository in place of those in our copy of it, which is gone by then."""
    return _OURS.sub(lambda found: found["inside"] or "the temporary repository", text)


def _shown(text: str) -> str:
    return printable(without_temporary_folders(text))[:_LONG]


def settings_of(order: Order) -> Callable[[Path], Settings]:
    """The settings at a path, with the order's options over them; SettingsError if they cannot be used."""
    told = order.options
    config = None if told.config is None else Path(told.config)
    overrides = Overrides(told.select, told.ignore, told.unsafe_fixes, config, told.opaque)
    return partial(overridden_settings, overrides, known_codes)
