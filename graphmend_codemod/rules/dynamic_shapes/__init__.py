"""GM5xx: outputs with data-dependent shapes."""
