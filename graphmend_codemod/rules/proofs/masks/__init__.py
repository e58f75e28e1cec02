"""Masks of ones and None, and what products and sums with them are."""
