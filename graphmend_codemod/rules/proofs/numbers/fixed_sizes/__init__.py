"""Operators that read a number out of a tensor, in a form of a fixed size (GM411)."""
