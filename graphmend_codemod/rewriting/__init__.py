"""Edits to text: place what rules propose, and change nothing else."""

from graphmend_codemod.rewriting.edits import Applied, apply

__all__ = ["Applied", "apply"]
