"""Files to findings and fixed texts: one function, one file, a project, a fixpoint."""
