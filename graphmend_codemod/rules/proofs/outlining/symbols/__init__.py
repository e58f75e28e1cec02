"""Numbers and sizes that only the data tells, which a graph carries as symbols (GM802)."""
