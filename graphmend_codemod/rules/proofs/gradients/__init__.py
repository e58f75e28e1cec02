"""Tensors that `forward` makes to take gradients for them, and where these go."""
