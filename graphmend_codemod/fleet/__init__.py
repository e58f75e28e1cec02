"""Many repositories: each in a child process with limits, each with one row of result."""
