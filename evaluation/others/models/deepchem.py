"""Molecules."""

import torch

SOURCE = "pip:deepchem==2.8.0"
IMPORTS = "deepchem.models.torch_models.layers"


def distances():
    from deepchem.models.torch_models.layers import InteratomicL2Distances

    return InteratomicL2Distances(5, 2, 3), ([torch.randn(5, 3), torch.randint(0, 5, (5, 2))],)


def atomic_convolution():
    from deepchem.models.torch_models.layers import AtomicConvolution

    params = [[5.0, 0.0, 1.0], [6.0, 1.0, 1.0]]
    inputs = (torch.randn(2, 5, 3), torch.randint(0, 5, (2, 5, 3)), torch.randint(0, 5, (2, 5, 3)))
    return AtomicConvolution(radial_params=params), (inputs,)


def graph_network():
    from deepchem.models.torch_models.layers import GraphNetwork

    return GraphNetwork(4, 4, 4), (
        torch.randn(5, 4),
        torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]]),
        torch.randn(6, 4),
        torch.randn(1, 4),
    )


def edge_network():
    from deepchem.models.torch_models.layers import EdgeNetwork

    inputs = [torch.randn(4, 8), torch.randn(5, 10), torch.tensor([[0, 1], [1, 0], [2, 3], [3, 2]])]
    return EdgeNetwork(8, 10), (inputs,)


def weave():
    from deepchem.models.torch_models.layers import WeaveLayer

    atoms, pairs = torch.randn(3, 75).numpy(), torch.randn(4, 14).numpy()
    split, to_pair = torch.tensor([0, 0, 1, 2]).numpy(), torch.tensor([[0, 0], [0, 1], [1, 1], [2, 2]]).numpy()
    return WeaveLayer(), ([atoms, pairs, split, to_pair],)


def weave_gather():
    from deepchem.models.torch_models.layers import WeaveGather

    return WeaveGather(2, 4, gaussian_expand=True), ([torch.randn(3, 4).numpy(), torch.tensor([0, 0, 1]).numpy()],)


def dtnn_step():
    from deepchem.models.torch_models.layers import DTNNStep

    inputs = [torch.randn(5, 8), torch.randn(6, 10), torch.tensor([0, 0, 1, 2, 3, 4]), torch.tensor([1, 2, 0, 0, 4, 3])]
    return DTNNStep(8, 10, 6), (inputs,)


def dtnn_gather():
    from deepchem.models.torch_models.layers import DTNNGather

    return DTNNGather(8, 2, [6]), ([torch.randn(5, 8), torch.tensor([0, 0, 0, 1, 1])],)


def mat_layer():
    from deepchem.models.torch_models.layers import MATEncoderLayer

    model = MATEncoderLayer(h=2, sa_hsize=8, d_input=8, d_hidden=8, d_output=8, encoder_hsize=8)
    return model, (torch.randn(1, 5, 8), torch.ones(1, 5), torch.rand(1, 5, 5), torch.rand(1, 5, 5))


def real_nvp():
    from deepchem.models.torch_models.layers import RealNVPLayer

    return RealNVPLayer(torch.tensor([0.0, 1.0]), 8), (torch.randn(4, 2),)


def molgan():
    from deepchem.models.torch_models.layers import MolGANEncoderLayer

    return MolGANEncoderLayer(units=[(8, 8), 8], nodes=5, edges=5), ([torch.rand(2, 5, 5, 5), torch.rand(2, 5, 5)],)


def combine():
    from deepchem.models.torch_models.layers import CombineMeanStd

    return CombineMeanStd(), ([torch.randn(2, 4), torch.rand(2, 4)],)
