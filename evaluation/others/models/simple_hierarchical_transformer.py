"""Transformers with hierarchies."""

import torch

SOURCE = "pip:simple-hierarchical-transformer==0.4.0"
IMPORTS = "simple_hierarchical_transformer"


def _tokens():
    return torch.randint(1, 20, (2, 16))


def _model(**options):
    from simple_hierarchical_transformer import HierarchicalTransformer

    return HierarchicalTransformer(num_tokens=20, dim=16, depth=1, dim_head=8, heads=2, seq_len=16, **options)


def one():
    return _model(), (_tokens(),)


def two():
    return _model(hierarchies=(1, 2), window_sizes=(8, None)), (_tokens(),)


def prediction():
    return _model(hierarchies=(1, 4), predict_hierarchy=1), (_tokens(),), {"train": False}
