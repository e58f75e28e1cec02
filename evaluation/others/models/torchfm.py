"""Factorisation machines."""

import torch

SOURCE = "pip:torchfm==0.7.0"
IMPORTS = "torchfm"
STUBS = "lmdb"

_FIELDS = [5, 7, 4]


def _ids():
    return torch.stack([torch.randint(0, n, (6,)) for n in _FIELDS], 1)


def feature_interaction():
    from torchfm.model.afi import AutomaticFeatureInteractionModel

    return AutomaticFeatureInteractionModel(_FIELDS, 8, 8, 2, 1, (8,), (0.0, 0.0, 0.0)), (_ids(),)


def attentional():
    from torchfm.model.afm import AttentionalFactorizationMachineModel

    return AttentionalFactorizationMachineModel(_FIELDS, 8, 8, (0.0, 0.0)), (_ids(),)


def adaptive():
    from torchfm.model.afn import AdaptiveFactorizationNetwork

    return AdaptiveFactorizationNetwork(_FIELDS, 8, 16, (8,), (0.0, 0.0, 0.0)), (_ids(),)


def deep_cross():
    from torchfm.model.dcn import DeepCrossNetworkModel

    return DeepCrossNetworkModel(_FIELDS, 8, 2, (8,), 0.0), (_ids(),)


def field_aware():
    from torchfm.model.ffm import FieldAwareFactorizationMachineModel

    return FieldAwareFactorizationMachineModel(_FIELDS, 8), (_ids(),)


def field_aware_neural():
    from torchfm.model.fnfm import FieldAwareNeuralFactorizationMachineModel

    return FieldAwareNeuralFactorizationMachineModel(_FIELDS, 8, (8,), (0.0, 0.0)), (_ids(),)


def collaborative():
    import numpy
    from torchfm.model.ncf import NeuralCollaborativeFiltering

    users, items = numpy.array([0]), numpy.array([1])
    return NeuralCollaborativeFiltering(_FIELDS[:2], users, items, 8, (8,), 0.0), (_ids()[:, :2],)


def products():
    from torchfm.model.pnn import ProductNeuralNetworkModel

    return ProductNeuralNetworkModel(_FIELDS, 8, (8,), 0.0, method="outer"), (_ids(),)


def wide_and_deep():
    from torchfm.model.wd import WideAndDeepModel

    return WideAndDeepModel(_FIELDS, 8, (8,), 0.0), (_ids(),)


def extreme():
    from torchfm.model.xdfm import ExtremeDeepFactorizationMachineModel

    return ExtremeDeepFactorizationMachineModel(_FIELDS, 8, (8,), 0.0, (8, 8)), (_ids(),)
