"""How long a model takes before and after: cold start, steady state, and what the profiler counts."""
