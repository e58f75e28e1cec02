"""BLAKE2 without OpenSSL, which `hashlib` loads: that takes longer than all that a commit hook wants of a digest."""

try:
    from _blake2 import blake2b
except ImportError:  # a Python that keeps it elsewhere
    from hashlib import blake2b

__all__ = ["blake2b"]
