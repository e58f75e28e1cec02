"""Python numbers and lists behind tensors."""
