"""Edits to text: place what rules propose, and change nothing else."""

from graphmend_codemod.rewriting.edits import Applied, apply
from graphmend_codemod.rewriting.text import RewriteError

__all__ = ["Applied", "RewriteError", "apply"]
