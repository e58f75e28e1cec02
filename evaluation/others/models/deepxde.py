"""Operators and equations learned by networks."""

import torch

SOURCE = "pip:DeepXDE==1.15.0"
IMPORTS = "deepxde"
STUBS = "skopt"


def _made(name, *arguments, **options):
    import os

    os.environ["DDE_BACKEND"] = "pytorch"
    import deepxde

    module = getattr(deepxde.nn.pytorch, name)(*arguments, "tanh", "Glorot uniform", **options)
    return module.to(torch.device("cpu"))


def network():
    return _made("FNN", [2, 8, 8, 1]), (torch.randn(4, 2),)


def parallel_networks():
    return _made("PFNN", [2, [4, 4], [4, 4], 2]), (torch.randn(4, 2),)


def operator():
    return _made("DeepONet", [6, 8, 8], [2, 8, 8]), ([torch.randn(4, 6), torch.randn(4, 2)],)


def cartesian():
    return _made("DeepONetCartesianProd", [6, 8, 8], [2, 8, 8]), ([torch.randn(4, 6), torch.randn(5, 2)],)


def several_outputs():
    return _made("DeepONetCartesianProd", [6, 8, 8], [2, 8, 8], num_outputs=2, multi_output_strategy="split_both"), (
        [torch.randn(4, 6), torch.randn(5, 2)],
    )


def multiple_inputs():
    return _made("MIONetCartesianProd", [6, 8, 8], [3, 8, 8], [2, 8, 8]), (
        [torch.randn(4, 6), torch.randn(4, 3), torch.randn(5, 2)],
    )
