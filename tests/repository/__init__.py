"""Tests of what is done with git: against real repositories."""
