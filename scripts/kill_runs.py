"""Kill runs at random moments and look for what is lost: `python scripts/kill_runs.py [--kills 30] [--clones 200]`.

`fix` in a checkout, `migrate` in a clone, `pr` against a forge on this machine, then a fleet over many small
repositories that is killed and resumed. After each kill the repository must be whole and as it was, or as a complete
run leaves it; the next run must succeed; at the end nothing may be left. Needs the extra `dev`; runs no code of a
repository. Exit code 1 when anything was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from graphmend_codemod.core.atomic_write import MARK  # noqa: E402
from tests.forge.github_fake import GitHubFake, Repo  # noqa: E402
from tests.forge.server import Server, running  # noqa: E402
from tests.forge.tools import BRANCH, adopt  # noqa: E402
from tests.repository.tools import BROKEN, CLEAN, Repository, broken_repository, empty_repository  # noqa: E402

_TOKEN = "ghp_local_token"
_NEWBORN = 11.0  # seconds until what a killed run left counts as left
_LONGEST = 300.0


@dataclass
class Tally:
    """What was found. `outcomes` counts how the repository was met after a kill."""

    runs: int = 0
    kills: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)

    def expect(self, fact: bool, what: str) -> None:
        """Note what is lost."""
        if not fact:
            self.lost.append(what)

    def told(self, name: str) -> str:
        """One line."""
        outcomes = ", ".join(f"{count} {what}" for what, count in self.outcomes.most_common())
        killed = f"{self.kills} of {self.runs} runs killed before their end"
        return f"{name}: {killed}; afterwards {outcomes}; lost: {'; '.join(self.lost) or 'nothing'}"


class Runner:
    """Starts commands with a temporary folder of their own, and kills them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._random = random.Random(seed)
        config = folder / "gitconfig"
        config.write_text("[user]\nname = A U Thor\nemail = author@example.org\n[init]\ndefaultBranch = main\n")
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "HOME": str(folder),
            "TMPDIR": str(self.temporary),
            "GIT_CONFIG_GLOBAL": str(config),
            "GIT_CONFIG_NOSYSTEM": "1",
            "PYTHONPATH": str(ROOT),
        }
        os.environ.update(self._environment)

    def run(self, arguments: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
        """A run to its end."""
        return subprocess.run(
            self._command(arguments),
            env={**self._environment, **more},
            capture_output=True,
            text=True,
            timeout=_LONGEST,
            check=False,
        )

    def kill(
        self, arguments: Sequence[str], longest: float, at: Callable[[], bool] = lambda: True, **more: str
    ) -> bool:
        """Start a run and kill it within `longest` seconds, but not before `at`; whether it was still running."""
        process = subprocess.Popen(
            self._command(arguments),
            env={**self._environment, **more},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        waiting = not at()
        while not at() and process.poll() is None:
            time.sleep(0.0005)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(self._random.uniform(0, 0.03) if waiting else self._random.uniform(0.05, longest))
        alive = process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(0.3)  # a git that it had started ends by itself
        return alive

    def left(self) -> list[str]:
        """What lies in the temporary folder."""
        return sorted(path.name for path in self.temporary.glob("graphmend-*"))

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "graphmend_codemod", *arguments]


def fixes(folder: Path, runner: Runner, kills: int) -> Tally:
    """Kill `fix` in a checkout of 40 files, every second time while it writes."""
    tally, root = Tally(), folder / "checkout"
    files = [root / f"part{number % 4}" / f"model{number}.py" for number in range(40)]
    command = ["fix", str(root), "--jobs", "2", "--no-cache", "--exit-zero"]

    def begin() -> None:
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(BROKEN)
        (root / "pyproject.toml").write_text("[tool.graphmend]\n")

    def begun() -> bool:
        return files[0].read_bytes() == fixed

    def beside() -> list[str]:
        return [path.name for path in root.rglob("*") if MARK in path.name]

    begin()
    began = time.monotonic()
    runner.run(command)
    seconds, fixed = time.monotonic() - began, files[0].read_bytes()
    for number in range(kills):
        begin()
        tally.kills += runner.kill(command, seconds, at=begun if number % 2 else lambda: True)
        texts = [file.read_bytes() for file in files]
        count = texts.count(fixed)
        tally.outcomes["no file fixed" if not count else "all files fixed" if count == 40 else "some files fixed"] += 1
        tally.outcomes["files of graphmend beside them"] += len(beside())
        tally.expect(set(texts) <= {fixed, BROKEN.encode()}, "a file that is not whole")
        done = runner.run(command)
        tally.expect(done.returncode == 0, f"the next run: {done.stderr.strip()[:200]}")
        tally.expect({file.read_bytes() for file in files} == {fixed}, "what the next run should have fixed")
        tally.expect(not beside(), f"files stay: {beside()}")
    return tally


def migrations(folder: Path, runner: Runner, kills: int) -> Tally:
    """Kill `migrate` in one clone."""
    tally, repository = Tally(), broken_repository(folder / "zoo")
    command = ["migrate", str(repository.folder), "--branch", "mended", "--no-evaluate", "--jobs", "1", "--no-cache"]
    seconds, whole = _complete(repository, runner, command, tally)
    before = _state(repository)
    while tally.kills < kills:
        tally.runs += 1
        tally.kills += runner.kill(command, seconds)
        branch = _branch(repository, "mended")
        tally.outcomes["no branch" if branch is None else "the whole branch"] += 1
        tally.expect(
            branch is None or repository.git("rev-parse", "mended^{tree}") == whole, "a branch that is not whole"
        )
        tally.expect(_state(repository) == before, "a change of the user's files, index or HEAD")
        tally.expect(_is_sound(repository), "an object")
        if branch is not None:
            repository.git("branch", "--quiet", "-D", "mended")
        done = runner.run(command)
        tally.expect(done.returncode == 0, f"the next run: {done.stderr.strip()[:200]}")
        tally.expect(_branch(repository, "mended") is not None, "the next run's branch")
        repository.git("branch", "--quiet", "-D", "mended")
    time.sleep(_NEWBORN)
    runner.run(command)
    tally.expect(not runner.left(), f"temporary folders stay: {runner.left()}")
    tally.expect(len(repository.git("worktree", "list").splitlines()) == 1, "work trees stay")
    tally.expect(not list(repository.common.glob("worktrees/*")), "records of work trees stay")
    return tally


def pull_requests(folder: Path, runner: Runner, kills: int) -> Tally:
    """Kill `pr` against a forge; each begins without a pull request."""
    tally = Tally()
    with _forge(folder) as (server, fake):
        repository = fake.repos["octo/zoo"]
        address = f"{server.url}/octo/zoo.git"
        command = [
            "pr",
            address,
            "--forge",
            "github",
            "--api-url",
            fake.url,
            "--no-evaluate",
            "--jobs",
            "1",
            "--no-cache",
        ]
        began = time.monotonic()
        done = runner.run(command, GITHUB_TOKEN=_TOKEN)
        seconds = time.monotonic() - began
        tally.expect(done.returncode == 0 and len(repository.pulls) == 1, f"the first run: {done.stderr}")
        tree, base = (
            server.git("octo/zoo", "rev-parse", f"{BRANCH}^{{tree}}"),
            server.git("octo/zoo", "rev-parse", "main"),
        )
        while tally.kills < kills:
            tally.runs += 1
            repository.pulls.clear()
            server.git("octo/zoo", "update-ref", "-d", f"refs/heads/{BRANCH}")
            tally.kills += runner.kill(command, seconds, GITHUB_TOKEN=_TOKEN)
            pushed = BRANCH in server.branches("octo/zoo")
            met = "a pull request" if repository.pulls else "a branch without one" if pushed else "nothing"
            tally.outcomes[met] += 1
            done = runner.run(command, GITHUB_TOKEN=_TOKEN)
            tally.expect(done.returncode == 0, f"the next run: {done.stderr.strip()[:200]}")
            tally.expect(len(repository.pulls) == 1, f"{len(repository.pulls)} pull requests")
            tally.expect(
                server.git("octo/zoo", "rev-parse", f"{BRANCH}^{{tree}}") == tree, "a branch that is not whole"
            )
            tally.expect(server.git("octo/zoo", "rev-parse", "main") == base, "the base")
        server.git("octo/zoo", "fsck", "--full", "--strict")
        tokens = [
            path for path in runner.temporary.rglob("*") if path.is_file() and _TOKEN.encode() in path.read_bytes()
        ]
        tally.expect(not tokens, f"a token lies in {tokens}")
        time.sleep(_NEWBORN)
        runner.run(command, GITHUB_TOKEN=_TOKEN)
    tally.expect(not runner.left(), f"temporary folders stay: {runner.left()}")
    return tally


def fleet(folder: Path, runner: Runner, clones: int, kills: int) -> Tally:
    """Check and migrate many clones, some of them broken; kill each run some times and resume it."""
    tally, below = Tally(), folder / "clones"
    bad = _clones(below, clones)
    results = folder / "fleet.sqlite"
    for action, status in (("check", "findings"), ("migrate", "migrated")):
        command = ["fleet", action, str(below), "--results", str(results), "--resume", "--jobs", "2"]
        command += ["--branch", "mended", "--no-evaluate"] if action == "migrate" else []
        for _ in range(kills):
            tally.runs += 1
            tally.kills += runner.kill(command, clones * 0.15)
            with contextlib.closing(sqlite3.connect(results)) as rows:
                tally.expect(rows.execute("PRAGMA integrity_check").fetchone() == ("ok",), "rows")
        time.sleep(_NEWBORN)
        done = runner.run(command)
        code = 2 if bad else 1 if action == "check" else 0
        tally.expect(done.returncode == code, f"{action}: exit code {done.returncode}: {done.stderr[-200:]}")
        with contextlib.closing(sqlite3.connect(results)) as rows:
            query = "SELECT status, count(*) FROM repositories WHERE action = ? GROUP BY status"
            found = dict(rows.execute(query, (action,)).fetchall())
        tally.outcomes.update({f"{action}: {name}": count for name, count in found.items()})
        tally.expect(sum(found.values()) == clones, f"{action}: rows of {clones - sum(found.values())} clones")
        good = found.get(status, 0) + (found.get("already migrated", 0) if action == "migrate" else 0)
        tally.expect(good + found.get("clean", 0) + bad == clones, f"{action}: {found}")
    for clone in sorted(below.iterdir()):
        if (clone / ".git").is_dir() and (clone / ".git/HEAD").read_text().startswith("ref:"):
            sound = subprocess.run(["git", "-C", str(clone), "fsck", "--strict"], capture_output=True, check=False)
            records = list(clone.glob(".git/worktrees/*"))
            tally.expect(sound.returncode == 0 and not records, f"{clone.name}: {sound.stderr!r} {records}")
    tally.expect(not runner.left(), f"temporary folders stay: {runner.left()}")
    return tally


def _clones(below: Path, count: int) -> int:
    """Every fourth is clean, every fiftieth is broken; how many are broken."""
    bad = 0
    for number in range(count):
        place = below / f"r{number:04d}"
        if number % 50 == 49:
            bad += 1
            empty_repository(place).write(".git/HEAD", "nonsense\n" if bad % 2 else "ref: refs/heads/none\n")
        elif number % 4 == 3:
            clean = empty_repository(place)
            clean.write("model.py", CLEAN)
            clean.commit()
        else:
            broken_repository(place)
    return bad


@contextlib.contextmanager
def _forge(folder: Path) -> Iterator[tuple[Server, GitHubFake]]:
    root = folder / "forge"
    root.mkdir()
    with running(root) as server:
        server.users[_TOKEN] = "bot"
        server.api = fake = GitHubFake(server)
        fake.repos["octo/zoo"] = Repo("octo/zoo")
        adopt(server, "octo/zoo", broken_repository(folder / "upstream"))
        yield server, fake


def _complete(repository: Repository, runner: Runner, command: Sequence[str], tally: Tally) -> tuple[float, str]:
    """How long a whole run takes, and the tree that it makes."""
    began = time.monotonic()
    done = runner.run(command)
    tally.expect(done.returncode == 0, f"the first run: {done.stderr}")
    seconds, tree = time.monotonic() - began, repository.git("rev-parse", "mended^{tree}")
    repository.git("branch", "--quiet", "-D", "mended")
    return seconds, tree


def _branch(repository: Repository, name: str) -> str | None:
    return repository.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{name}") or None


def _state(repository: Repository) -> tuple[object, ...]:
    files = [path for path in sorted(repository.folder.rglob("*")) if ".git" not in path.parts and path.is_file()]
    index = (repository.folder / ".git/index").read_bytes()
    return (
        [(path, path.read_bytes()) for path in files],
        index,
        repository.git("rev-parse", "HEAD"),
        repository.git("stash", "list"),
    )


def _is_sound(repository: Repository) -> bool:
    command = ["git", "-C", str(repository.folder), "fsck", "--full", "--strict"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main() -> int:
    """Kill, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30, help="of fix, of migrate and of pr each")
    parser.add_argument("--clones", type=int, default=200, help="in the fleet")
    parser.add_argument("--fleet-kills", type=int, default=3, help="of check and of migrate each")
    parser.add_argument("--only", choices=("fix", "migrate", "pr", "fleet"), help="one of the four")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kill-runs-") as name:
        folder = Path(name).resolve()
        runner = Runner(folder, options.seed)
        tallies: dict[str, Tally] = {}
        kinds: dict[str, Callable[[], Tally]] = {
            "fix": lambda: fixes(folder, runner, options.kills),
            "migrate": lambda: migrations(folder, runner, options.kills),
            "pr": lambda: pull_requests(folder, runner, options.kills),
            f"fleet of {options.clones}": lambda: fleet(folder, runner, options.clones, options.fleet_kills),
        }
        for what, work in kinds.items():
            if options.only is not None and not what.startswith(options.only):
                continue
            began = time.monotonic()
            tallies[what] = work()
            print(f"{tallies[what].told(what)} ({time.monotonic() - began:.0f} s)", flush=True)
    return int(any(tally.lost for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
