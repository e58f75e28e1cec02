"""All fixes of a repository on a new branch: one commit per rule, measured, with a report."""
