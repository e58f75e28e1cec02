"""The bot on one repository: token, client and a temporary repository for `pull_request`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import MutableMapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from graphmend_codemod.bot.pull_request import Outcome, Progress, PullRequestOptions, open_pull_request
from graphmend_codemod.bot.workspace import make_workspace
from graphmend_codemod.forge.base import ForgeError, Project
from graphmend_codemod.forge.clients import connect
from graphmend_codemod.forge.credentials import (
    VARIABLES,
    Credential,
    from_credential_helper,
    scrubbed,
    taken_from_environment,
)
from graphmend_codemod.forge.location import Location, locate, looks_remote
from graphmend_codemod.forge.objects import borrowed
from graphmend_codemod.forge.retry import Patience
from graphmend_codemod.forge.sources import can_leave_out
from graphmend_codemod.forge.transfer import Transfer
from graphmend_codemod.repository.checkout import Checkout, open_checkout
from graphmend_codemod.repository.git import Git, GitFailed, without_git_environment
from graphmend_codemod.repository.worktree import temporary_folder


def find_repository(
    name: str, remote: str, *, kind: str | None = None, api: str | None = None
) -> tuple[Location, Checkout | None]:
    """Where REPO is on its forge, and the clone of it that was named. Raises `ForgeError`, `RepositoryError`."""
    if looks_remote(name):
        return locate(name, kind=kind, api=api), None
    with without_git_environment():
        checkout = open_checkout(Path(name))
        try:
            url = checkout.git.text("config", "--get", f"remote.{remote}.url")
        except GitFailed as error:
            raise ForgeError(
                f"{name}: has no remote {remote!r}; name another with --remote, or give the repository's address"
            ) from error
    return locate(url, kind=kind, api=api), checkout


def known_credential(location: Location, environment: MutableMapping[str, str] | None = None) -> Credential | None:
    """The token for a forge, if there is one; afterwards none is left in the environment."""
    found = taken_from_environment(location.kind, environment)
    if found is not None:
        return found
    with temporary_folder() as folder, without_git_environment():
        url = location.url if not location.over_ssh else location.api
        host = location.host if not location.over_ssh else urlsplit(location.api).netloc
        return from_credential_helper(Git(folder), url, host)


def find_credential(location: Location, environment: MutableMapping[str, str] | None = None) -> Credential:
    """The token for a forge; afterwards none is left in the environment. Raises `ForgeError` when there is none."""
    found = known_credential(location, environment)
    if found is None:
        raise ForgeError(
            f"no token for {location.host}; set {VARIABLES[location.kind][-1]}, or log in with git's credential helper"
        )
    return found


def run_bot(
    options: PullRequestOptions,
    location: Location,
    checkout: Checkout | None,
    credential: Credential,
    *,
    patience: float,
    git_timeout: float,
    object_cache: Path | None = None,
    progress: Progress = lambda line: None,
) -> Outcome:
    """Bring the repository's pull request to where it should be. Raises what `open_pull_request` does.

    Where no code of the repository runs and no clone lends its objects, only files that can matter are fetched; with
    `object_cache`, a folder, those that an earlier run has not fetched.
    """
    bound = Patience(patience)
    forge = connect(location, credential, bound)
    with temporary_folder() as folder, without_git_environment(), contextlib.ExitStack() as stack:
        lean = checkout is None and options.evaluate is False and can_leave_out(Git(folder))
        workspace = make_workspace(folder, location.path.rpartition("/")[2], checkout, sources_only=lean)
        store = stack.enter_context(borrowed(object_cache, location)) if lean and object_cache is not None else None
        if store is not None:
            store.lend_to(workspace)

        @functools.cache  # git's settings in the workspace are asked once
        def reach(url: str) -> Transfer:
            return Transfer(workspace.folder, url, credential, bound, folder, git_timeout, sources_only=lean)

        def transfer(project: Project) -> Transfer:
            return reach(_address(location, project))

        def fetched(commit: str) -> None:
            if store is not None:
                store.keep(workspace, commit)

        outcome = open_pull_request(options, forge, workspace, transfer, progress=progress, fetched=fetched)
    return replace(
        outcome,
        facts=tuple(scrubbed(fact, credential) for fact in outcome.facts),
        steps=tuple(scrubbed(step, credential) for step in outcome.steps),
        remarks=tuple(scrubbed(remark, credential) for remark in outcome.remarks),
    )


def _address(location: Location, project: Project) -> str:
    """What git is given: the forge's own answer, if it is on the host that the user named."""
    if location.over_ssh:
        return project.ssh_url
    if urlsplit(project.url).netloc != urlsplit(location.url).netloc or not project.url.startswith(
        location.url.partition("://")[0]
    ):
        raise ForgeError(f"{location.host} says that {project.path} is at {project.url}; the token is not sent there")
    return project.url
