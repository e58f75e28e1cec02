"""The same forges and repositories as for the tests of forges."""

from tests.forge.conftest import hub, isolated, server, slept, upstream

__all__ = ["hub", "isolated", "server", "slept", "upstream"]
