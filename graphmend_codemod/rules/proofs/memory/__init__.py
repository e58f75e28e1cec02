"""Who shares memory, and which assignment reaches a statement."""
