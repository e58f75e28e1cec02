"""graphmend for all-repos (https://github.com/asottile/all-repos): an autofixer, and a module to push with.

As an autofixer it puts all safe fixes into one commit in each repository that mentions torch, and pushes in the way
that is configured:

    python hooks/all_repos_graphmend.py --config all-repos.json --dry-run

As the `push` module of `all-repos.json` it makes graphmend's own pull request instead, with a commit a rule, and brings
one that is open up to date:

    "push": "hooks.all_repos_graphmend",
    "push_settings": {"forge": "github", "fork": false}

For more than some dozens of repositories, `graphmend fleet pr all-repos.json` does the same with limits, rows and
`--resume`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from all_repos import autofix_lib
from all_repos.config import Config

# Without the current folder, which is the repository: it may have modules of any name.
_START = (
    "import sys; sys.path[:] = [folder for folder in sys.path if folder]; "
    "from graphmend_codemod.cli.main import main; sys.exit(main())"
)
_COMMAND = (sys.executable, "-c", _START)


class Settings(NamedTuple):
    """`push_settings`: what `graphmend pr` is told. Tokens are read from the environment, never from here."""

    forge: str | None = None
    api_url: str | None = None
    fork: bool = False
    draft: bool = False
    evaluate: bool = False


def find_repos(config: Config) -> Iterable[str]:
    """Clones with a Python file that mentions torch."""
    for name in sorted(config.get_cloned_repos()):
        folder = os.path.join(config.output_dir, name)
        command = ("git", "-C", folder, "grep", "--quiet", "--fixed-strings", "torch", "HEAD", "--", "*.py")
        if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0:
            yield folder


def apply_fix() -> None:
    """Fix the current folder."""
    done = autofix_lib.run(*_COMMAND, "fix", "--no-cache", "--exit-zero", check=False)
    if done.returncode:
        raise SystemExit(f"graphmend fix ended with {done.returncode}")


def push(settings: Settings, branch_name: str) -> None:
    """Open or update the pull request of the repository in the current folder; `branch_name` is all-repos' own."""
    options = ["--evaluate" if settings.evaluate else "--no-evaluate", "--no-cache"]
    options += [f"--forge={settings.forge}"] if settings.forge else []
    options += [f"--api-url={settings.api_url}"] if settings.api_url else []
    options += [name for name, wanted in (("--fork", settings.fork), ("--draft", settings.draft)) if wanted]
    done = autofix_lib.run(*_COMMAND, "pr", ".", *options, check=False)
    if done.returncode:
        raise SystemExit(f"graphmend pr ended with {done.returncode}")


def main(argv: Sequence[str] | None = None) -> int:
    """The autofixer."""
    parser = argparse.ArgumentParser(description="Fix TorchDynamo graph breaks in all repositories.")
    autofix_lib.add_fixer_args(parser)
    args = parser.parse_args(argv)
    repos, config, commit, settings = autofix_lib.from_cli(
        args, find_repos=find_repos, msg="Remove TorchDynamo graph breaks", branch_name="graphmend"
    )
    autofix_lib.fix(repos, apply_fix=apply_fix, config=config, commit=commit, autofix_settings=settings)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
