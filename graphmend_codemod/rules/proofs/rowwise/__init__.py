"""Code on some rows of tensors, written for all rows."""
