"""Python integers and lists that tensors were made of, read from there (GM402)."""
