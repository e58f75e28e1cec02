"""What code that becomes an operator may change, of its own function, of layers and of libraries."""
