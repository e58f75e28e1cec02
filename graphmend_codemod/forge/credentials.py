"""Tokens: from the environment or git's credential helper, and nowhere else.

A token is taken out of the environment when it is read, so that no child process inherits it.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

from graphmend_codemod.core.own_process import hide_this_process
from graphmend_codemod.repository.git import Git, GitFailed

GITHUB, GITLAB = "github", "gitlab"
VARIABLES = {
    GITHUB: ("GRAPHMEND_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    GITLAB: ("GRAPHMEND_TOKEN", "GITLAB_TOKEN"),
}
# CI_JOB_TOKEN may neither push nor open merge requests, but must not reach a child process all the same.
_OTHERS = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "CI_JOB_TOKEN", "ACTIONS_RUNTIME_TOKEN")
_ALL = frozenset(name for names in (*VARIABLES.values(), _OTHERS) for name in names)
_USERS = {GITHUB: "x-access-token", GITLAB: "oauth2"}
_MASK = "***"


@dataclass(frozen=True)
class Credential:
    """A user and a secret. The secret is in no text that is made of this."""

    user: str
    secret: str = field(repr=False)

    def __str__(self) -> str:
        return self.user


def taken_from_environment(kind: str, environment: MutableMapping[str, str] | None = None) -> Credential | None:
    """The token for a forge of this kind. All tokens that are known by name leave the environment."""
    variables = os.environ if environment is None else environment
    hide_this_process()  # what it was started with can be read even when it is gone from the environment
    found = {name: variables.pop(name, "") for name in _ALL}
    token = next((found[name] for name in VARIABLES[kind] if found[name]), None)
    return None if token is None else Credential(_USERS[kind], token.strip())


def without_tokens(environment: Mapping[str, str]) -> dict[str, str]:
    """A copy for a child process."""
    return {name: value for name, value in environment.items() if name not in _ALL}


def tokens_in(environment: Mapping[str, str]) -> dict[str, str]:
    """What `without_tokens` leaves out."""
    hide_this_process()
    return {name: environment[name] for name in _ALL if environment.get(name)}


def from_credential_helper(git: Git, url: str, host: str) -> Credential | None:
    """What git's credential helper knows about a host; None when it knows nothing. Nobody is asked."""
    protocol = url.partition("://")[0]
    question = f"protocol={protocol}\nhost={host}\n\n"
    quiet = ("-c", "core.askPass=", "-c", "credential.interactive=false")
    try:
        answer = git.text(*quiet, "credential", "fill", stdin=question.encode())
    except GitFailed:
        return None
    told = dict(line.split("=", 1) for line in answer.splitlines() if "=" in line)
    secret = told.get("password", "")
    return Credential(told.get("username", ""), secret) if secret else None


def scrubbed(text: str, credential: Credential | None) -> str:
    """The text without the secret, however it is written, and without what stands before an `@` in a URL."""
    if credential is not None and credential.secret:
        secret = credential.secret
        pair = f"{credential.user}:{secret}"
        spellings = {secret, quote(secret, safe=""), quote_plus(secret)}
        spellings |= {base64.b64encode(plain.encode()).decode().rstrip("=") for plain in (secret, pair)}
        for spelling in sorted(spellings, key=len, reverse=True):
            text = text.replace(spelling, _MASK)
    return re.sub(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@'\"]+@", r"\1", text)
