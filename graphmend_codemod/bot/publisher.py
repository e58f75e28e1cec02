"""What a run changes on the forge: a pull request is opened, brought up to date, reported on or closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from graphmend_codemod.bot import report_body as views
from graphmend_codemod.bot.idempotent import comment_once, create_once, has_note, keep_comments, same_text
from graphmend_codemod.bot.state_comment import mark_of, read_mark, title_digest, with_mark
from graphmend_codemod.core.settings import PullRequestSettings
from graphmend_codemod.forge.base import Forge, ForgeError, Project, Proposal, PullRequest
from graphmend_codemod.migrate.outcome import Migration
from graphmend_codemod.reporting.report import plural

_REPORT, _LEFT_ALONE = "report-{}", "left-alone"


@dataclass
class Publisher:
    """Makes changes on a forge, or in a dry run only says which; `steps` and `remarks` are added to."""

    forge: Forge
    settings: PullRequestSettings
    dry_run: bool
    progress: Callable[[str], None]
    steps: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def publish(self, proposal: Proposal, current: PullRequest | None) -> tuple[PullRequest | None, bool, bool]:
        """The open pull request, if there is one afterwards; whether it was opened; whether an open one was changed."""
        opened, changed = current is None, False
        if current is None:
            draft = "draft " if proposal.draft else ""
            self.steps.append(
                f"open a {draft}pull request from {proposal.source.path}:{proposal.branch} to {proposal.base}: "
                f"{proposal.title}"
            )
            if not self.dry_run:
                self.progress("opening the pull request")
                current, opened = create_once(self.forge, proposal)
        if current is not None:
            changed = self._update(current, proposal)
        if opened:
            self._decorate(current)
        return current, opened, changed

    def attach(self, made: Migration, tip: str, project: Project, source: Project, current: PullRequest | None) -> None:
        """Attach the whole report where the body has only its beginning: to the commit's check, else as comments."""
        parts = views.parts(made, limit=self.forge.report_limit)
        self.steps.append(f"attach the full report in {plural(len(parts), 'part')}")
        if self.dry_run or current is None:
            return
        self.progress("attaching the full report")
        try:
            # A check belongs to the repository that was pushed to.
            if source.path != project.path or not self.forge.attach(tip, parts):
                self._comment(current, parts)
        except ForgeError as error:
            self.remarks.append(f"the full report is not attached: {error}")

    def withdraw(self, current: PullRequest) -> None:
        """What an earlier run may have attached in comments says nothing any more."""
        if self.dry_run:
            return
        try:
            self._comment(current, ())
        except ForgeError as error:
            self.remarks.append(f"an earlier report stays in the comments: {error}")

    def close(self, current: PullRequest, made: Migration) -> None:
        """Close it with the reason."""
        self.steps.append(f"comment on {current.url} and close it: nothing left to fix")
        if self.dry_run:
            return
        comment_once(self.forge, current.number, views.nothing_left(made), "closed")
        mark = replace(read_mark(current.body) or mark_of(()), closed=True)
        self.forge.update(current.number, body=with_mark(current.body, mark), close=True)

    def leave_alone(self, current: PullRequest | None, branch: str) -> None:
        """Say once that the branch is a person's now."""
        if current is None:
            return
        if self.dry_run:
            self.steps.append(f"comment once on {current.url}")
        elif comment_once(self.forge, current.number, views.left_alone(branch), _LEFT_ALONE):
            self.steps.append(f"comment on {current.url}")

    def was_left_alone(self, closed: PullRequest) -> bool:
        """Whether a person was told there that the bot goes on when the branch is deleted."""
        return has_note(self.forge, closed.number, _LEFT_ALONE)

    def _comment(self, current: PullRequest, parts: tuple[str, ...]) -> None:
        texts = {}
        for number in range(1, views.MOST_PARTS + 1):
            which = f", part {number} of {len(parts)}" if len(parts) > 1 else ""
            texts[_REPORT.format(number)] = (
                f"<details><summary>graphmend report{which}</summary>\n\n{parts[number - 1]}\n</details>"
                if number <= len(parts)
                else None
            )
        keep_comments(self.forge, current.number, texts)

    def _update(self, current: PullRequest, proposal: Proposal) -> bool:
        before = read_mark(current.body)
        # A title that a person gave stays.
        retitled = before is None or before.title != title_digest(current.title) or current.title == proposal.title
        title = None if retitled else proposal.title
        body = None if same_text(current.body, proposal.body) else proposal.body
        base = None if current.base == proposal.base else proposal.base
        named = [name for name, value in (("title", title), ("body", body), ("base", base)) if value is not None]
        if not named:
            return False
        self.steps.append(f"update {', '.join(named)} of {current.url}")
        if not self.dry_run:
            self.forge.update(current.number, title=title, body=body, base=base)
        return True

    def _decorate(self, current: PullRequest | None) -> None:
        """Labels and reviewers, of a new pull request alone: a person may have taken them off."""
        for what, how, values, add in (
            ("labels", "add the labels", self.settings.labels, self.forge.add_labels),
            ("reviewers", "ask for review by", self.settings.reviewers, self.forge.ask_for_review),
        ):
            if not values:
                continue
            self.steps.append(f"{how} {', '.join(values)}")
            if current is None:
                continue
            try:
                add(current.number, values)
            except ForgeError as error:
                self.remarks.append(f"the pull request has no {what}: {error}")
