"""Sorting with a gradient."""

import torch

SOURCE = "pip:diffsort==0.2.0"
IMPORTS = "diffsort"


def odd_even():
    from diffsort import DiffSortNet

    return DiffSortNet("odd_even", 4), (torch.randn(3, 4),)


def bitonic():
    from diffsort import DiffSortNet

    return DiffSortNet("bitonic", 8, distribution="logistic_phi"), (torch.randn(3, 8),)


def gaussian():
    from diffsort import DiffSortNet

    return DiffSortNet("bitonic", 4, distribution="gaussian"), (torch.randn(3, 4),)


def optimal():
    from diffsort import DiffSortNet

    return DiffSortNet("odd_even", 4, distribution="optimal"), (torch.randn(3, 4),)
