"""A forge on this machine, as the tests of the bot have it."""

from __future__ import annotations

from tests.forge.conftest import hub, isolated, server, slept, upstream

__all__ = ["hub", "isolated", "server", "slept", "upstream"]
