"""GM8xx: code that only an opaque operator takes into the graph."""
