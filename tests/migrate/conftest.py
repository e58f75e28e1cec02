"""The same repositories and settings as for the tests of git."""

from tests.repository.conftest import isolated, repository

__all__ = ["isolated", "repository"]
