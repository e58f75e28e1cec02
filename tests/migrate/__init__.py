"""Tests of migrations: against real repositories."""
