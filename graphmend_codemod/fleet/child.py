"""The process that handles one repository, started by `limits`: RESULT is its argument, the order is on its input."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.fleet.answers import answer, settings_of
from graphmend_codemod.fleet.jobs import CHECK, Order, order_from_json
from graphmend_codemod.fleet.results import CLEAN, FAILED, FINDINGS, LEFT, Row
from graphmend_codemod.fleet.snapshot import snapshot
from graphmend_codemod.forge.base import ForgeError
from graphmend_codemod.repository.git import RepositoryError, without_git_environment
from graphmend_codemod.repository.worktree import temporary_folder


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
    try:
        if order.options.action == CHECK:
            return _check(order)
        # Only now: a check needs neither the forges' clients nor the migration.
        from graphmend_codemod.fleet.changes import change

        return change(order)
    except (ForgeError, RepositoryError, SettingsError, OSError) as error:
        return answer(order, FAILED, error=order.scrubbed(str(error)))


def _end_with(parent: int) -> None:
    """End when the process that watches the limits has been killed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _check(order: Order) -> Row:
    from graphmend_codemod.core.findings import why_left
    from graphmend_codemod.engine.api import check

    with temporary_folder() as folder, without_git_environment():
        root = snapshot(order, folder)
        settings = settings_of(order)(root)
        result = check([root], settings, jobs=1, cache=False)
    findings, problems = result.findings, result.problems
    if problems and not findings and len({one.path for one in problems}) >= result.files:
        return answer(order, FAILED, error=str(problems[0]))
    waiting = [one for one in findings if not one.is_applied(settings.unsafe_fixes, settings.opaque)]
    fixable = len(findings) - len(waiting)
    return answer(
        order,
        FINDINGS if fixable else LEFT if findings else CLEAN,
        sites=len(findings),
        fixable=fixable,
        left=(f"{one.code}: {why_left(one)}" for one in waiting),
        remarks=map(str, problems),
    )
