"""One repository, one pull request: opened, updated in place, left alone or closed, as the forge and the code demand.

The forge is asked first and changed last. Until the push nothing has happened anywhere; every step after it can be
repeated by the next run, which finds branch and pull request by the branch's name.
"""

from __future__ import annotations

import contextlib
import enum
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from graphmend_codemod.bot import report_body as views
from graphmend_codemod.bot.ownership import Series, bot_series, new_series
from graphmend_codemod.bot.publisher import Publisher
from graphmend_codemod.bot.state_comment import Mark, mark_of, read_mark, title_digest
from graphmend_codemod.bot.workspace import identity
from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.core.interruption import interruptible
from graphmend_codemod.core.settings import PullRequestSettings, Settings
from graphmend_codemod.evaluation.port import Wanted
from graphmend_codemod.forge.base import Forge, ForgeError, Project, Proposal, PullRequest, State
from graphmend_codemod.forge.transfer import BranchMoved, Transfer
from graphmend_codemod.migrate import migration
from graphmend_codemod.migrate.migration import MigrationError
from graphmend_codemod.migrate.outcome import NOTHING_DONE, Migration
from graphmend_codemod.migrate.saved import Earlier
from graphmend_codemod.repository.checkout import SPARSE
from graphmend_codemod.repository.commits import is_branch_name
from graphmend_codemod.repository.git import Git, RepositoryError

Progress = Callable[[str], None]

_DEPTH = 64  # more than there are rules, and so commits of ours
_MIGRATIONS = 2
_REMOTE = "refs/graphmend/branch"


class Done(enum.Enum):
    """What became of it; `would` in a dry run."""

    OPENED = "opened"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    CLOSED = "closed"
    LEFT_ALONE = "left alone"
    NOT_WANTED = "not opened again"
    SWITCHED_OFF = "switched off"
    NOTHING = "nothing to do"


CHANGES = frozenset({Done.OPENED, Done.UPDATED, Done.CLOSED})


@dataclass(frozen=True)
class PullRequestOptions:
    """What a user asks for. What is None comes from `[tool.graphmend.pull-request]` at the base, or from the forge.

    `evaluate` and `wanted` are those of a migration; with `evaluate` false no code of the repository runs. `earlier` is
    a migration that is proposed instead of a new one. `timeout` limits the wait for a new fork.
    """

    settings: Callable[[Path], Settings]
    base: str | None = None
    branch: str | None = None
    draft: bool | None = None
    fork: bool = False
    evaluate: bool | None = None
    wanted: Wanted = field(default_factory=Wanted)
    dry_run: bool = False
    jobs: int = 1
    cache: bool = True
    earlier: Earlier | None = None
    timeout: float = 300.0


@dataclass(frozen=True)
class Outcome:
    """What was done. `steps` tells it in order; in a dry run, what would be done. `facts` are why."""

    done: Done
    project: Project
    branch: str
    pull_request: PullRequest | None = None
    proposal: Proposal | None = None
    migration: Migration | None = None
    facts: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def open_pull_request(
    options: PullRequestOptions,
    forge: Forge,
    workspace: Git,
    transfer: Callable[[Project], Transfer],
    *,
    progress: Progress = lambda line: None,
    fetched: Callable[[str], None] = lambda commit: None,
) -> Outcome:
    """Bring the repository's pull request to where it should be.

    `workspace` is an empty bare repository, `transfer` says how to reach a project's, `fetched` hears of the base's
    commit when it is there. Raises `ForgeError`, `MigrationError`, `SettingsError`, and `Interrupted`; what was done
    until then is found by the next run.
    """
    with interruptible() as interruption, _one_kind_of_error():

        def heedful(line: str) -> None:
            interruption.heed()
            progress(line)

        return _Run(options, forge, workspace, transfer, heedful, fetched).outcome()


class _Run:
    """One run. Its attributes are what was found out so far."""

    def __init__(
        self,
        options: PullRequestOptions,
        forge: Forge,
        workspace: Git,
        transfer: Callable[[Project], Transfer],
        progress: Progress,
        fetched: Callable[[str], None],
    ) -> None:
        self._options = options
        self._forge = forge
        self._git = workspace
        self._transfer = transfer
        self._progress = progress
        self._fetched = fetched
        self._facts: list[str] = []
        self._steps: list[str] = []
        self._remarks: list[str] = []

    def outcome(self) -> Outcome:
        """Do it."""
        options = self._options
        self._progress("asking the forge")
        self._project = project = self._forge.project()
        if project.archived:
            raise ForgeError(f"{project.path} is archived, so nothing can be pushed to it")
        self._base = options.base or project.default_branch
        self._upstream = self._transfer(project)
        tip = self._fetch_base()
        self._settings = settings = self._read_settings(tip)
        self._publisher = Publisher(self._forge, settings, options.dry_run, self._progress, self._steps, self._remarks)
        self._branch = options.branch or settings.branch
        self._require_usable_branch()
        if not settings.enabled:
            return self._end(Done.SWITCHED_OFF)
        if options.base is None and settings.base is not None and settings.base != self._base:
            self._base = settings.base
            tip = self._fetch_base()
        source, there_is = self._source()
        pull_requests = self._forge.pull_requests(source, self._branch) if there_is else ()
        current = next((one for one in pull_requests if one.state is State.OPEN), None)
        remote = self._remote_branch(source) if there_is else None
        there = self._series(source) if remote is not None else None
        if remote is not None and there is None:
            self._facts.append(f"branch {self._branch} has commits by someone else and is not touched")
            self._publisher.leave_alone(current, self._branch)
            return self._end(Done.LEFT_ALONE, pull_request=current)
        made = self._migrate(tip) if options.earlier is None else self._known(options.earlier, tip)
        if not made.commits:
            return self._close(current, source, remote, made)
        mark = mark_of(finding for commit in made.commits for finding in commit.applied)
        refused = None if current else _refused(pull_requests, mark)
        if refused is not None and not (remote is None and self._publisher.was_left_alone(refused)):
            self._facts.append(f"{refused.url} proposed the same changes and was closed by a person")
            return self._end(Done.NOT_WANTED, pull_request=refused, migration=made)
        proposal = self._proposal(made, source, mark)
        pushed = self._push(source, made, there, remote)
        current, opened, changed = self._publisher.publish(proposal, current)
        if proposal.cut:
            self._publisher.attach(made, str(made.commits[-1].oid), self._project, source, current)
        elif changed and current is not None:
            self._publisher.withdraw(current)
        done = Done.OPENED if opened else Done.UPDATED if pushed or changed else Done.UNCHANGED
        return self._end(done, pull_request=current, proposal=proposal, migration=made)

    def _fetch_base(self) -> str:
        self._progress(f"fetching {self._base}")
        tip = self._upstream.heads(self._base).get(self._base)
        if tip is None:
            raise ForgeError(
                f"{self._project.path} has no branch {self._base}; name one with --base, "
                "or as `base` in [tool.graphmend.pull-request]"
            )
        local = f"refs/heads/{self._base}"
        self._upstream.fetch(local, local, depth=1)
        self._upstream.fetch_sources(local)
        tip = self._git.text("rev-parse", "--verify", local)
        self._fetched(tip)
        return tip

    def _read_settings(self, tip: str) -> PullRequestSettings:
        """Of the base, since they decide which branch to look at before anything is checked out."""
        folder = self._upstream.scratch / "settings"
        folder.mkdir(exist_ok=True)
        entry = self._git.text("ls-tree", tip, "--", "pyproject.toml")
        if entry.startswith("100"):  # a file; a symbolic link may lead anywhere
            (folder / "pyproject.toml").write_bytes(self._git.output("cat-file", "blob", f"{tip}:pyproject.toml"))
        try:
            settings = self._options.settings(folder)
        except SettingsError as error:
            raise SettingsError(str(error).replace(f"{folder}/", f"{self._project.path}: ")) from error
        return settings.pull_request if settings.root.is_relative_to(folder) else PullRequestSettings()

    def _require_usable_branch(self) -> None:
        name = self._branch
        if not is_branch_name(self._git, name):
            raise SettingsError(f"{name!r} is not a name that git allows for a branch; choose another with --branch")
        if name in {self._base, self._project.default_branch}:
            raise SettingsError(f"branch {name} is where pull requests go to; choose another with --branch")

    def _source(self) -> tuple[Project, bool]:
        """The repository that the branch is pushed to; whether there is one, which in a dry run nobody makes."""
        if not self._options.fork:
            if not self._project.can_push:
                self._remarks.append(f"the token seems to have no right to push to {self._project.path}; try --fork")
            return self._project, True
        if self._options.dry_run:
            found = self._forge.existing_fork()
            if found is None:
                self._steps.append(f"fork {self._project.path}")
                return replace(self._project, path=f"(your fork)/{self._project.name}"), False
            return found, True
        self._progress("forking")
        fork = self._forge.fork()
        reach, until = self._transfer(fork), time.monotonic() + self._options.timeout
        # A forge fills a new fork in the background.
        while not reach.heads(fork.default_branch):
            if time.monotonic() > until:
                raise ForgeError(f"the fork {fork.path} is still empty; run again later")
            time.sleep(2)
        return fork, True

    def _remote_branch(self, source: Project) -> str | None:
        return self._transfer(source).heads(self._branch).get(self._branch)

    def _series(self, source: Project) -> Series | None:
        self._transfer(source).fetch(f"refs/heads/{self._branch}", _REMOTE, depth=_DEPTH)
        return bot_series(self._git, _REMOTE, *identity(self._git))

    def _migrate(self, tip: str) -> Migration:
        """Migrate the base, and once more if it moved meanwhile."""
        for left in reversed(range(_MIGRATIONS)):
            made = migration.migrate(
                migration.MigrationOptions(
                    repository=self._git.folder,
                    settings=self._options.settings,
                    base=self._base,
                    branch=self._branch,
                    wanted=self._options.wanted,
                    evaluate=self._options.evaluate,
                    jobs=self._options.jobs,
                    cache=self._options.cache,
                ),
                progress=self._progress,
            )
            if made.exit_code == NOTHING_DONE:
                raise MigrationError(f"{self._project.path}: no file could be checked; the first: {made.problems[0]}")
            now = self._upstream.heads(self._base).get(self._base, tip)
            if now == tip:
                break
            if not left:
                self._remarks.append(f"{self._base} got new commits during the run; the next run rebases")
                break
            self._progress(f"{self._base} has new commits; starting again")
            self._git.output("update-ref", "-d", f"refs/heads/{self._branch}")
            tip = self._fetch_base()
        # The workspace has no other files than those that can matter.
        made = replace(made, remarks=tuple(remark for remark in made.remarks if remark != SPARSE))
        self._remarks.extend(made.remarks)
        return made

    def _known(self, earlier: Earlier, tip: str) -> Migration:
        """The earlier migration, if it starts from what the base is or was."""
        made, git = earlier.made, earlier.git
        if made.base.oid != tip:
            if not git.succeeds("cat-file", "-e", f"{tip}^{{commit}}"):
                raise MigrationError(
                    f"{self._base} of {self._project.path} has commits that this clone lacks; fetch them and run again"
                )
            if not git.succeeds("merge-base", "--is-ancestor", made.base.oid, tip):
                raise MigrationError(
                    f"branch {made.branch} starts from {made.base}, which is not on {self._base} of "
                    f"{self._project.path}; push that first, or name another base with --base"
                )
            self._remarks.append(f"{self._base} has moved since the migration; a run without --from rebases")
        self._facts.append(f"branch {made.branch} is used as `graphmend migrate` created it")
        return made

    def _proposal(self, made: Migration, source: Project, mark: Mark) -> Proposal:
        settings = self._settings._replace(branch=self._branch)
        title = views.title(made, settings)
        line = replace(mark, title=title_digest(title)).line()
        body = views.body(made, settings, limit=self._forge.body_limit, last_line=line)
        return Proposal(
            source=source,
            branch=self._branch,
            base=self._base,
            title=title,
            body=body.text,
            draft=settings.draft if self._options.draft is None else self._options.draft,
            cut=body.cut,
        )

    def _push(self, source: Project, made: Migration, there: Series | None, remote: str | None) -> bool:
        tip = made.commits[-1].oid
        assert tip is not None
        holder = self._git if self._options.earlier is None else self._options.earlier.git
        if there == new_series(holder, made.base.oid, tip):
            return False
        how = "push" if remote is None else "replace graphmend's commits on"
        self._steps.append(f"{how} branch {self._branch} of {source.path} ({len(made.commits)} on {made.base})")
        if not self._options.dry_run:
            self._progress(f"pushing {self._branch}")
            try:
                replace(self._transfer(source), folder=self._pushed_from(holder, tip)).push(
                    tip, self._branch, expected=remote
                )
            except BranchMoved:
                # Another run of the bot was faster, or a person pushed while we worked.
                if not self._transfer(source).heads(self._branch) or self._series(source) is None:
                    raise
                self._remarks.append(f"another run has pushed {self._branch} meanwhile; its commits are kept")
        return True

    def _pushed_from(self, holder: Git, tip: str) -> Path:
        """A repository of our own where possible: a clone's settings are not asked how to reach the forge."""
        lent = self._git.succeeds("cat-file", "-e", f"{tip}^{{commit}}")
        if lent and holder.text("rev-parse", "--is-shallow-repository") == "false":
            return self._git.folder
        return holder.folder

    def _close(self, current: PullRequest | None, source: Project, remote: str | None, made: Migration) -> Outcome:
        if current is None:
            return self._end(Done.NOTHING, migration=made)
        self._publisher.close(current, made)
        if remote is not None:
            self._steps.append(f"delete branch {self._branch} of {source.path}")
            if not self._options.dry_run:
                try:
                    self._transfer(source).push(None, self._branch, expected=remote)
                except ForgeError as error:
                    self._remarks.append(f"branch {self._branch} was not deleted: {error}")
        return self._end(Done.CLOSED, pull_request=current, migration=made)

    def _end(
        self,
        done: Done,
        *,
        pull_request: PullRequest | None = None,
        proposal: Proposal | None = None,
        migration: Migration | None = None,
    ) -> Outcome:
        return Outcome(
            done,
            self._project,
            self._branch,
            pull_request,
            proposal,
            migration,
            tuple(self._facts),
            tuple(self._steps),
            tuple(self._remarks),
        )


def _refused(pull_requests: tuple[PullRequest, ...], mark: Mark) -> PullRequest | None:
    """The last pull request, if a person closed it and it proposed all that is proposed now."""
    last = pull_requests[0] if pull_requests else None
    if last is None or last.state is not State.CLOSED:
        return None
    before = read_mark(last.body)
    return last if before is not None and not before.closed and before.covers(mark) else None


@contextlib.contextmanager
def _one_kind_of_error() -> Iterator[None]:
    try:
        yield
    except RepositoryError as error:
        raise MigrationError(str(error)) from error
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise MigrationError(f"{where}{error.strerror or error}; nothing was pushed") from error
