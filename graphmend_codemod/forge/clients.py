"""The client for a forge, by its kind."""

from __future__ import annotations

from graphmend_codemod.core.extras import install_command
from graphmend_codemod.forge.base import Forge, ForgeError
from graphmend_codemod.forge.credentials import GITHUB, Credential
from graphmend_codemod.forge.location import Location
from graphmend_codemod.forge.retry import Patience


def connect(location: Location, credential: Credential, patience: Patience) -> Forge:
    """A client for the repository. Raises `ForgeError` when the libraries for it are not installed."""
    try:
        if location.kind == GITHUB:
            from graphmend_codemod.forge.github import GitHub

            return GitHub(location.api, location.path, credential, patience)
        from graphmend_codemod.forge.gitlab import GitLab

        return GitLab(location.api, location.path, credential, patience)
    except ImportError as error:
        command = install_command("bot")
        raise ForgeError(f"forges need the extra `bot`; run `{command}` ({error.name})") from error
