"""Models that a repository's own tests call: recorded as the tests run, made again for a measurement."""
