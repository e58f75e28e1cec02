"""GM3xx: data-dependent `raise` and `assert`."""
