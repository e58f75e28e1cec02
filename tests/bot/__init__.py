"""Tests of pull requests: against a forge on this machine."""
