"""What one file says: definitions, imports, attributes and calls, as spelled."""
