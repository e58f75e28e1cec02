"""Errors of more than one module. Each text is one line: what, why, way out."""


class GraphmendError(Exception):
    """Something that cannot be done."""


class SettingsError(GraphmendError):
    """A setting, or a file that settings come from, that cannot be used."""
