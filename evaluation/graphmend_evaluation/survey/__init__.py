"""Every model type of the transformers package, made small: what breaks its graph, before and after a migration."""
