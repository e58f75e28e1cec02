"""Which repository on which forge is meant: from a URL, a remote of a checkout, and what CI systems say."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from graphmend_codemod.forge.base import ForgeError
from graphmend_codemod.forge.credentials import GITHUB, GITLAB, scrubbed

_LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}
_SCP = re.compile(r"(?:[^@/:]+@)?(?P<host>[^/:@]+):(?P<path>(?!//).+)")


@dataclass(frozen=True)
class Location:
    """A repository by its address. `url` is what git is given, without a password; `origin` is `scheme://host:port`."""

    kind: str
    host: str
    path: str
    api: str
    url: str

    @property
    def over_ssh(self) -> bool:
        """Whether git authenticates with a key of its own."""
        return not self.url.startswith(("https://", "http://"))


def looks_remote(name: str) -> bool:
    """Whether REPO is an address, not a folder."""
    return "://" in name or (not os.path.exists(name) and _SCP.fullmatch(name) is not None)


def locate(
    url: str, *, kind: str | None = None, api: str | None = None, environment: Mapping[str, str] | None = None
) -> Location:
    """The repository at `url`. `kind` and `api` are asked of the user, never of a repository: a token goes there.

    Raises `ForgeError` when it is no address of a forge, or plain HTTP would carry a token over a network.
    """
    known = os.environ if environment is None else environment
    host, path, clean = _parts(url)
    kind = kind or _kind(host, known)
    if kind is None:
        raise ForgeError(f"{clean}: cannot tell whether {host} is GitHub or GitLab; say it with --forge")
    api = (api or _api(kind, host, clean, known)).rstrip("/")
    _require_safe(api)
    return Location(kind, host, path, api, clean)


def _parts(url: str) -> tuple[str, str, str]:
    """Host (with port), path without `.git`, and the URL without a password."""
    scp = None if "://" in url else _SCP.fullmatch(url)
    if scp is not None:
        return scp["host"], _path(scp["path"], _shown(url)), url
    split = urlsplit(url)
    if split.scheme not in {"https", "http", "ssh"} or not split.hostname:
        raise ForgeError(f"{_shown(url)}: is no address of a forge; it should look like https://HOST/OWNER/NAME")
    host = split.netloc.rpartition("@")[2]
    if split.scheme == "ssh":
        user = split.username or "git"
        return split.hostname, _path(split.path, _shown(url)), f"ssh://{user}@{host}{split.path}"
    clean = f"{split.scheme}://{host}{split.path}"
    _require_safe(clean)
    return host, _path(split.path, clean), clean


def _shown(url: str) -> str:
    """Without what stands before an `@`, where people put passwords."""
    return scrubbed(url, None) if "://" in url else url.rpartition("@")[2]


def _path(path: str, shown: str) -> str:
    path = path.strip("/").removesuffix(".git")
    if not re.fullmatch(r"[\w.][\w.-]*(/[\w.][\w.-]*)+", path, re.ASCII):
        raise ForgeError(f"{shown}: names no repository; it should end in OWNER/NAME")
    return path


def _require_safe(url: str) -> None:
    split = urlsplit(url)
    if split.scheme == "https" or (split.scheme == "http" and split.hostname in _LOCAL_HOSTS):
        return
    raise ForgeError(f"{_shown(url)}: a token would travel unencrypted; use https")


def _kind(host: str, environment: Mapping[str, str]) -> str | None:
    name = host.partition(":")[0]
    for kind, variable in ((GITHUB, "GITHUB_SERVER_URL"), (GITLAB, "CI_SERVER_URL")):
        if urlsplit(environment.get(variable, "")).netloc == host:
            return kind
    return next((kind for kind in (GITHUB, GITLAB) if kind in name.split(".")), None)


def _api(kind: str, host: str, url: str, environment: Mapping[str, str]) -> str:
    scheme = "http" if url.startswith("http://") else "https"
    if kind == GITLAB:
        return f"{scheme}://{host}"
    if host == "github.com":
        return "https://api.github.com"
    told = environment.get("GITHUB_API_URL", "")
    if told and urlsplit(environment.get("GITHUB_SERVER_URL", "")).netloc == host:
        return told
    return f"{scheme}://{host}/api/v3"
