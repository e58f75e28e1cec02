"""Break sites beside the changes and findings at their places, and what follows for the changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphmend_evaluation.changes import FileChanges, Mark
from graphmend_evaluation.evaluation import Cause, Change, JudgedSite, ModelEvaluation, Reverted, Source
from graphmend_evaluation.results import BreakSite, ModelRow

NO_RULE = "no rule finds it"
NOT_FIXED = "it was found, and its fix does not reach this case"
NOT_ON_BRANCH = "a fix is known, and the branch does not have it"


class Judge:
    """What is known of a branch: its changes by file, and the sites that were found in its base."""

    def __init__(self, files: Mapping[str, FileChanges], marks: Iterable[Mark]) -> None:
        self._files = files
        self._marks: dict[str, list[Mark]] = {}
        for mark in marks:
            self._marks.setdefault(mark.path, []).append(mark)

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes, by path and position."""
        return tuple(change for path in sorted(self._files) for change in self._files[path].changes)

    def model(self, row: ModelRow, source: Source, *, remembered: bool = False) -> ModelEvaluation:
        """A measured model with its break sites judged."""
        after = row.after.counts
        before = row.before.counts
        left = tuple(self._left(site) for site in after.sites) if after is not None else ()
        written = {change.id for each in left if (change := self._written(each.site)) is not None}
        places = {(each.site.path, self._base_line(each.site)) for each in left if self._written(each.site) is None}
        fixed = []
        for site in before.sites if before is not None and after is not None else ():
            judged = self._at_base(site)
            if judged.change not in written and (site.path, site.line) not in places:
                fixed.append(judged)
        return ModelEvaluation(row, source, tuple(fixed), left, remembered=remembered)

    def useless(self, models: Sequence[ModelEvaluation]) -> tuple[Reverted, ...]:
        """Changes in whose place a model still breaks, and that took a break from no model."""
        helped = {site.change for model in models for site in model.fixed}
        found: dict[str, Reverted] = {}
        for model in models:
            for judged in model.left:
                if judged.change is None or judged.change in helped or judged.change in found:
                    continue
                site = judged.site
                detail = f"{site.path}:{site.line} still breaks: {site.kind or site.reason}"
                change = self._change(site.path, judged.change)
                found[judged.change] = Reverted(change, model.name, Cause.STILL_BREAKS, detail)
        return tuple(found.values())

    def _change(self, path: str, name: str) -> Change:
        return next(change for change in self._files[path].changes if change.id == name)

    def _base_line(self, site: BreakSite) -> int:
        file = self._files.get(site.path)
        return site.line if file is None else file.base_line(site.line)

    def _at_base(self, site: BreakSite) -> JudgedSite:
        mark = self._mark(site.path, site.line)
        return JudgedSite(site, None if mark is None else mark.rule, self._made_for(mark), "")

    def _made_for(self, mark: Mark | None) -> str | None:
        """The change that was made for a site."""
        if mark is None or mark.reason or mark.path not in self._files:
            return None
        return next((each.id for each in self._files[mark.path].changes if _covers(each, mark)), None)

    def _written(self, site: BreakSite) -> Change | None:
        """The change that wrote the line of a site of the head."""
        file = self._files.get(site.path)
        change = file.at_head(site.line) if file is not None else None
        return None if change is None or change.is_support else change

    def _left(self, site: BreakSite) -> JudgedSite:
        change = self._written(site)
        if change is not None:
            return JudgedSite(site, next(iter(change.rules), None), change.id, NOT_FIXED)
        mark = self._mark(site.path, self._base_line(site))
        if mark is None:
            return JudgedSite(site, None, None, NO_RULE)
        made = self._made_for(mark)  # a compile path that returns leaves the statement behind it as it was
        if made is not None:
            return JudgedSite(site, mark.rule, made, NOT_FIXED)
        return JudgedSite(site, mark.rule, None, mark.reason or NOT_ON_BRANCH)

    def _mark(self, path: str, line: int) -> Mark | None:
        """The smallest site around a line."""
        around = [mark for mark in self._marks.get(path, ()) if mark.start <= line <= mark.end]
        return min(around, key=lambda mark: (mark.end - mark.start, mark.rule), default=None)


def _covers(change: Change, mark: Mark) -> bool:
    first, last = change.base_start, change.base_start + max(change.base_lines, 1)
    return mark.rule in change.rules and first <= mark.end + 1 and last > mark.start
