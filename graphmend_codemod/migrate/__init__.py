"""Migrate a repository: all fixes on a new branch, one commit per rule, measured, with a report."""
