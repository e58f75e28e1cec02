"""The process that handles one repository: `python -m graphmend_codemod.fleet.child RESULT`, the order on its input."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from graphmend_codemod import bot, migration, pull_request
from graphmend_codemod.cli import options as command_line
from graphmend_codemod.fleet.order import CHECK, MIGRATE, Order, order_from_json
from graphmend_codemod.fleet.rows import CLEAN, FAILED, FINDINGS, MIGRATED, Row
from graphmend_codemod.fleet.snapshot import snapshot
from graphmend_codemod.forge.base import ForgeError
from graphmend_codemod.forge.location import looks_remote
from graphmend_codemod.migrated import NOTHING_DONE, Migration, why_left
from graphmend_codemod.migration import MigrationError
from graphmend_codemod.reporting.report import printable
from graphmend_codemod.repository.git import RepositoryError, without_git_environment
from graphmend_codemod.repository.worktree import temporary_folder
from graphmend_codemod.runner import check
from graphmend_codemod.settings import SettingsError

_REASONS = 20
_ERROR = 500


def main() -> int:
    """Read the order, do it, write the row."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    order = order_from_json(sys.stdin.read())
    row = handle(order)
    result = Path(sys.argv[1])
    partly = result.with_suffix(".part")
    partly.write_text(row.as_json(), encoding="utf-8")
    os.replace(partly, result)
    return 0


def handle(order: Order) -> Row:
    """The row for one repository; what goes wrong with it is its `error`."""
    do = {CHECK: _check, MIGRATE: _migrate}.get(order.options.action, _pull_request)
    try:
        return do(order)
    except (ForgeError, MigrationError, RepositoryError, SettingsError, command_line.CommandError, OSError) as error:
        return _row(order, FAILED, error=printable(order.scrubbed(str(error)))[:_ERROR])


def _end_with(parent: int) -> None:
    """End when the process that watches the limits has been killed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _check(order: Order) -> Row:
    with temporary_folder() as folder, without_git_environment():
        root = snapshot(order, folder)
        settings = command_line.settings_from(_arguments(order), root)
        result = check([root], settings, jobs=1, cache=False)
    findings, problems = result.findings, result.problems
    if problems and not findings and len({one.path for one in problems}) >= result.files:
        return _row(order, FAILED, error=printable(str(problems[0]))[:_ERROR])
    left = (f"{one.code}: {why_left(one)}" for one in findings if not one.fixable)
    return _row(
        order,
        FINDINGS if any(one.fixable for one in findings) else CLEAN,
        sites=len(findings),
        left=_most(left),
        remarks=_remarks(str(one) for one in problems),
    )


def _migrate(order: Order) -> Row:
    if looks_remote(order.location):
        return _row(order, FAILED, error="a branch is made in a clone; clone it first, or use `graphmend fleet pr`")
    made = migration.migrate(
        migration.Request(
            repository=Path(order.location),
            settings=partial(command_line.settings_from, _arguments(order)),
            branch=order.options.branch,
            evaluate=order.options.evaluate,
            dry_run=order.options.dry_run,
            cache=False,
        )
    )
    if made.exit_code == NOTHING_DONE:
        return _row(order, FAILED, error=printable(str(made.problems[0]))[:_ERROR])
    return _migrated(order, MIGRATED if made.commits else CLEAN, made)


def _pull_request(order: Order) -> Row:
    told = order.options
    location, checkout = bot.find_repository(order.location, "origin", kind=told.forge, api=told.api)
    request = pull_request.Request(
        settings=partial(command_line.settings_from, _arguments(order)),
        branch=told.branch,
        fork=told.fork,
        evaluate=told.evaluate,
        dry_run=told.dry_run,
        cache=False,
    )
    credential = bot.find_credential(location, dict(order.tokens))
    outcome = bot.run_bot(request, location, checkout, credential, patience=told.patience, git_timeout=told.git_timeout)
    url = "" if outcome.pull_request is None else outcome.pull_request.url
    if outcome.migration is None:
        return _row(order, outcome.done.value, pull_request=url, remarks=_remarks(outcome.remarks))
    return _migrated(order, outcome.done.value, outcome.migration, url, outcome.remarks)


def _migrated(order: Order, status: str, made: Migration, url: str = "", remarks: Iterable[str] = ()) -> Row:
    known = [one for one in made.models if one.before.breaks is not None and one.after.breaks is not None]
    return _row(
        order,
        status,
        sites=made.sites + len(made.remaining),
        fixed=made.sites,
        breaks_before=sum(one.before.breaks or 0 for one in known) if known else None,
        breaks_after=sum(one.after.breaks or 0 for one in known) if known else None,
        pull_request=url,
        left=_most(f"{one.code}: {why_left(one)}" for one in made.remaining),
        remarks=_remarks([*made.remarks, *remarks, *map(str, made.problems)]),
    )


def _row(order: Order, status: str, **values: object) -> Row:
    return Row(order.name, order.location, order.options.action, status, **values)  # type: ignore[arg-type]


def _most(reasons: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(printable(reason)[:_ERROR] for reason in reasons).most_common(_REASONS))


def _remarks(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(printable(text)[:_ERROR] for text in texts))[:_REASONS]


def _arguments(order: Order) -> argparse.Namespace:
    told = order.options
    return argparse.Namespace(
        select=list(told.select),
        ignore=list(told.ignore),
        unsafe_fixes=told.unsafe_fixes,
        config=None if told.config is None else Path(told.config),
    )


if __name__ == "__main__":
    sys.exit(main())
