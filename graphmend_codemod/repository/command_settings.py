"""Settings that make git run a command, in one list, and how they are switched off for the commands that we run.

A repository's `.git/config` is data of whoever made the folder: no command in it is run. Where such a setting decides
how git connects, git connects to nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FILTERS = re.compile(r"filter\..*\.(clean|smudge|process|required)")
"""A user's own filters (`git lfs`, `nbstripout`) are switched off, too: fixes are made of the committed bytes."""

_NOTHING, _FAILS, _NO = "", "false", "false"

SWITCHED_OFF = (
    (r"core\.fsmonitor", _NO),
    (r"core\.hookspath", os.devnull),
    (r"core\.pager|pager\..*", "cat"),
    (r"core\.editor|sequence\.editor", _FAILS),
    (r"interactive\.difffilter", _NOTHING),
    (r"alias\..*", _NOTHING),  # never in place of a command that git has
    (r"diff\.external|diff\..*\.(command|textconv)", _NOTHING),
    (r"merge\..*\.driver", _FAILS),
    (r"(diff|merge)\.(gui)?tool|(difftool|mergetool)\..*\.cmd", _NOTHING),
    (r"gpg\.(.*\.)?program|gpg\.ssh\.defaultkeycommand", _FAILS),
    (r"log\.showsignature|merge\.verifysignatures|(commit|tag|push)\.gpgsign", _NO),
    (r"trailer\..*\.(cmd|command)", _NOTHING),
    (r"submodule\..*\.update", "none"),
    (r"gc\.recentobjectshook", _NOTHING),
    (r"uploadpack\.packobjectshook", _NOTHING),
    (r"hook\..*\.command", "true"),
    (r"tar\..*\.command", _FAILS),
    (r"(browser|man|guitool)\..*\.cmd|web\.browser|help\.browser|instaweb\.httpd", _NOTHING),
    (r"imap\.tunnel|sendemail\.(.*\.)?(smtpserver|tocmd|cccmd|headercmd)", _NOTHING),
)
"""Pattern of the setting's name, in lower case but for names in the middle, and the value that runs nothing."""

CONNECTING = (
    r"core\.(sshcommand|gitproxy|askpass|alternaterefscommand)",
    r"credential\.(.*\.)?helper",
    r"remote\..*\.(uploadpack|receivepack|vcs|proxy)",
    r"protocol\..*",
    r"http\.(.*\.)?(proxy|ssl[a-z]+|pinnedpubkey|curloptresolve)",
)
"""Settings by which a repository runs a command to connect, or has a token of the user's sent to another machine."""

_SWITCHED_OFF = tuple((re.compile(pattern), value) for pattern, value in SWITCHED_OFF)
_CONNECTING = re.compile("|".join(CONNECTING))
_THEIRS = frozenset({"local", "worktree"})
_PROTOCOLS = "file:http:https:ssh"  # never `ext`, which runs what an address says
_NO_PROTOCOL = "none"


@dataclass(frozen=True)
class Hardening:
    """What git is told beside a command: settings, by name and value, and which settings forbid it to connect."""

    overrides: tuple[tuple[str, str], ...]
    forbidding: tuple[str, ...] = ()

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Variables for git. Settings go by `GIT_CONFIG_COUNT`, which takes names with `=`, as `-c` does not."""
        told = variables.get("GIT_CONFIG_COUNT", "")
        first = int(told) if told.isdecimal() else 0
        made = {"GIT_CONFIG_COUNT": str(first + len(self.overrides))}
        for number, (name, value) in enumerate(self.overrides, start=first):
            made[f"GIT_CONFIG_KEY_{number}"], made[f"GIT_CONFIG_VALUE_{number}"] = name, value
        made["GIT_ALLOW_PROTOCOL"] = _NO_PROTOCOL if self.forbidding else _PROTOCOLS
        return made


def hardening(settings: Iterable[tuple[str, str]]) -> Hardening:
    """What switches off the commands among `settings`: scope (as `git config --show-scope` has it) and name."""
    overrides: dict[str, str] = {}
    forbidding: dict[str, None] = {}
    for scope, name in settings:
        if FILTERS.fullmatch(name):
            overrides[name] = _NO if name.endswith(".required") else _NOTHING
        if scope not in _THEIRS:
            continue
        for pattern, value in _SWITCHED_OFF:
            if pattern.fullmatch(name):
                overrides[name] = value
        if _CONNECTING.fullmatch(name):
            forbidding[name] = None
    return Hardening(tuple(sorted(overrides.items())), tuple(forbidding))
