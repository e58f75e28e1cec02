"""graphmend: removes TorchDynamo graph breaks from source code, with eager behaviour unchanged."""

__version__ = "0.1.0"
