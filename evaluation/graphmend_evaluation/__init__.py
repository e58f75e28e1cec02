"""The evaluation stage: what `torch.compile` makes of a model before and after a migration.

Only child processes import torch; `isolation` and `results` are free of it and serve the parent.
"""
