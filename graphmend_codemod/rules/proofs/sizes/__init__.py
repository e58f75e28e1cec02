"""Sizes and the integers that they are computed from."""
