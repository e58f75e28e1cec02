"""graphmend: removes TorchDynamo graph breaks from source code, with eager behaviour unchanged."""

__version__ = "0.1.0"


class GraphmendError(Exception):
    """Something that cannot be done. The text is one line: what, why, way out."""
