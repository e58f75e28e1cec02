"""Models of other packages that break the graph: a study half to learn from, an exam half whose places nobody reads."""
