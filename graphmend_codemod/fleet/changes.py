"""Jobs that change something: a branch in a clone, or a pull request on a forge."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from graphmend_codemod.core.findings import why_left
from graphmend_codemod.evaluation.port import MeasuredVersion
from graphmend_codemod.fleet.answers import answer, settings_of
from graphmend_codemod.fleet.jobs import MIGRATE, Order
from graphmend_codemod.fleet.results import ALREADY, CLEAN, FAILED, LEFT, MIGRATED, Row
from graphmend_codemod.forge.location import looks_remote
from graphmend_codemod.migrate import migration
from graphmend_codemod.migrate.migration import MigrationError
from graphmend_codemod.migrate.outcome import NOTHING_DONE, Migration
from graphmend_codemod.migrate.saved import earlier_migration
from graphmend_codemod.repository.checkout import open_checkout, resolve_commit
from graphmend_codemod.repository.git import RepositoryError


def change(order: Order) -> Row:
    """Migrate a clone, or open or update a pull request. Raises `ForgeError`, `RepositoryError`, `SettingsError`."""
    try:
        return _migrate(order) if order.options.action == MIGRATE else _pull_request(order)
    except MigrationError as error:
        return answer(order, FAILED, error=order.scrubbed(str(error)))


def _migrate(order: Order) -> Row:
    if looks_remote(order.location):
        return answer(order, FAILED, error="a branch is made in a clone; clone it first, or use `graphmend fleet pr`")
    earlier = None if order.options.dry_run else _earlier(order)
    if earlier is not None:
        return _migrated(order, ALREADY, earlier, remarks=_moved(order, earlier))
    made = migration.migrate(
        migration.MigrationOptions(
            repository=Path(order.location),
            settings=settings_of(order),
            branch=order.options.branch,
            evaluate=order.options.evaluate,
            dry_run=order.options.dry_run,
            cache=False,
        )
    )
    if made.exit_code == NOTHING_DONE:
        return answer(order, FAILED, error=str(made.problems[0]))
    return _migrated(order, MIGRATED if made.commits else LEFT if made.remaining else CLEAN, made)


def _earlier(order: Order) -> Migration | None:
    """What an earlier run has migrated to the same branch, if that is as it left it."""
    try:
        checkout = open_checkout(Path(order.location))
        return earlier_migration(checkout, order.options.branch or migration.default_branch()).made
    except (MigrationError, RepositoryError):
        return None


def _moved(order: Order, made: Migration) -> list[str]:
    head = resolve_commit(open_checkout(Path(order.location)), "HEAD")
    if head.oid == made.base.oid:
        return []
    return [f"{made.branch} starts from {made.base}, and HEAD is at {head}; --branch names another one to make"]


def _pull_request(order: Order) -> Row:
    from graphmend_codemod.bot import pull_request, runner  # which need the extra `bot`; a migration does not

    told = order.options
    location, checkout = runner.find_repository(order.location, "origin", kind=told.forge, api=told.api)
    request = pull_request.PullRequestOptions(
        settings=settings_of(order),
        branch=told.branch,
        fork=told.fork,
        evaluate=told.evaluate,
        dry_run=told.dry_run,
        cache=False,
    )
    credential = runner.find_credential(location, dict(order.tokens))
    outcome = runner.run_bot(
        request,
        location,
        checkout,
        credential,
        patience=told.patience,
        git_timeout=told.git_timeout,
        object_cache=None if told.object_cache is None else Path(told.object_cache),
    )
    url = "" if outcome.pull_request is None else outcome.pull_request.url
    if outcome.migration is None:
        return answer(order, outcome.done.value, pull_request=url, remarks=outcome.remarks)
    return _migrated(order, outcome.done.value, outcome.migration, url, outcome.remarks)


def _migrated(order: Order, status: str, made: Migration, url: str = "", remarks: Iterable[str] = ()) -> Row:
    known = [one for one in made.models if one.before.breaks is not None and one.after.breaks is not None]
    return answer(
        order,
        status,
        sites=made.sites + len(made.remaining),
        fixed=made.sites,
        fixable=made.sites + sum(one.is_applied(made.unsafe_fixes) for one in made.remaining),
        breaks=(_sum(one.before for one in known), _sum(one.after for one in known)) if known else None,
        pull_request=url,
        left=(f"{one.code}: {why_left(one)}" for one in made.remaining),
        remarks=[*made.remarks, *remarks, *map(str, made.problems)],
    )


def _sum(arms: Iterable[MeasuredVersion]) -> int:
    return sum(arm.breaks or 0 for arm in arms)
