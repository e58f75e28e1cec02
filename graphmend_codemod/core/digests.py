"""BLAKE2 digests without `hashlib`, which loads OpenSSL and costs more time than the digests themselves."""

try:
    from _blake2 import blake2b
except ImportError:  # a Python that keeps it elsewhere
    from hashlib import blake2b

__all__ = ["blake2b"]
