"""Tests of settings, sources, the cache, workers and the terminal."""
