"""Memory sharing between tensors, and which assignment reaches a statement."""
