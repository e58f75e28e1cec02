"""The body of a pull request: cut between items where it is too long, never in the middle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graphmend_codemod.bot import report_body as views
from graphmend_codemod.bot.state_comment import mark_of, read_mark, with_mark
from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.core.settings import PullRequestSettings, Settings, load_settings
from graphmend_codemod.evaluation.port import Measured
from graphmend_codemod.migrate import migration
from graphmend_codemod.migrate.outcome import Migration
from tests.evaluation import report_samples
from tests.repository.tools import BROKEN, empty_repository

LINE = "<!-- the end -->"


@pytest.fixture
def outcome(tmp_path: Path) -> Migration:
    """A migration of one file, told as if there had been 200 like it."""
    repository = empty_repository(tmp_path / "many")
    repository.write("zoo/model.py", BROKEN)
    repository.commit()
    request = migration.MigrationOptions(repository.folder, load_settings_of, evaluate=False, cache=False, dry_run=True)
    made = migration.migrate(request)
    paths = tuple(f"zoo/model_{number:03d}.py" for number in range(200))
    commits = (
        replace(
            commit,
            applied=tuple(finding._replace(path=path) for path in paths for finding in commit.applied),
            files=paths,
        )
        for commit in made.commits
    )
    return replace(made, commits=tuple(commits))


def load_settings_of(start: Path) -> Settings:
    return load_settings(start)


def test_a_body_that_fits_lists_every_site(outcome: Migration) -> None:
    text = views.body(outcome, PullRequestSettings(), limit=1_000_000, last_line=LINE).text
    assert text.count("zoo/model_") == 400
    assert text.endswith(f"\n{LINE}\n")


@pytest.mark.parametrize("limit", [65_536, 20_000, 6_000])
def test_a_long_body_is_cut_between_items_and_says_how_many_are_missing(outcome: Migration, limit: int) -> None:
    text = views.body(outcome, PullRequestSettings(), limit=limit, last_line=LINE).text
    assert len(text.encode()) <= limit
    assert text.startswith("**400 break sites would be fixed in 200 files")
    assert text.endswith(f"\n{LINE}\n")
    assert text.count("<details>") == text.count("</details>") == 2
    listed = [line for line in text.splitlines() if "zoo/model_" in line]
    assert all(line.startswith("- `zoo/model_") for line in listed)
    if len(listed) < 400:
        missing = sum(int(line.split()[3]) for line in text.splitlines() if line.startswith("- ... and "))
        assert len(listed) + missing == 400


def test_a_template_longer_than_the_limit_keeps_the_mark(outcome: Migration) -> None:
    settings = PullRequestSettings(body="word\n" * 30_000 + "$report")
    text = views.body(outcome, settings, limit=65_536, last_line=LINE).text
    assert len(text.encode()) <= 65_536
    assert text.endswith(f"(The rest does not fit here.)\n\n{LINE}\n")


def test_a_mark_survives_what_a_forge_does_to_a_body(outcome: Migration) -> None:
    mark = mark_of(finding for commit in outcome.commits for finding in commit.applied)
    assert mark.each
    body = f"text\n\n{mark.line()}\n"
    assert read_mark(body.replace("\n", "\r\n").strip()) == mark
    assert read_mark(with_mark(body, mark)) == mark
    assert read_mark("<!-- graphmend-mark {not json} -->") is None
    assert read_mark("") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("labels = 1", "pull-request labels must be a list"),
        ("pull-request = 3", "must be a table"),
        ('title = "$nonsense"', "may contain $repository, $sites, $files"),
        ("enabled = 1", "must be true or false"),
        ('branches = "x"', "did you mean `branch`"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(tmp_path: Path, text: str, words: str) -> None:
    head = "[tool.graphmend]\n" if text.startswith("pull-request") else "[tool.graphmend.pull-request]\n"
    (tmp_path / "pyproject.toml").write_text(head + text)
    with pytest.raises(SettingsError) as caught:
        load_settings(tmp_path)
    assert words in str(caught.value)


@pytest.mark.parametrize("limit", [65_536, 12_000])
@pytest.mark.parametrize("kind", ["measured", "troubled"])
def test_an_evaluations_report_is_the_evidence(outcome: Migration, kind: str, limit: int) -> None:
    evaluation = report_samples.measured()
    evaluation = report_samples.troubled(evaluation) if kind == "troubled" else evaluation
    evaluated = replace(outcome, measured=Measured(evaluation=evaluation))
    text = views.body(evaluated, PullRequestSettings(), limit=limit, last_line=LINE).text
    assert len(text.encode()) <= limit
    assert evaluation.models[0].name.rpartition(":")[2] in text
    order = ["### Reproduce", "### Change or stop the bot", LINE]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert text.endswith(f"\n{LINE}\n")
