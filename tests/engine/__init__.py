"""Tests of runs over many files."""
