"""Exceptions that several modules raise. Each message is one line: what failed, why, and the way out."""


class GraphmendError(Exception):
    """Something that cannot be done."""


class SettingsError(GraphmendError):
    """A setting, or a file that settings come from, that cannot be used."""
