"""Spiking networks that learn."""

import torch

SOURCE = "pip:bindsnet==0.3.4"
IMPORTS = "bindsnet"
STUBS = "gymnasium ale_py cv2 skimage foolbox numba tensorboardX tqdm"


class _Steps(torch.nn.Module):
    """Neurons for a few steps of time."""

    def __init__(self, nodes):
        super().__init__()
        nodes.set_batch_size(2)
        nodes.compute_decays(1.0)
        self.nodes = nodes

    def forward(self, x):
        spikes = []
        for step in x:
            self.nodes(step)
            spikes.append(self.nodes.s)
        return torch.stack(spikes)


def _currents():
    return (torch.rand(3, 2, 5) * 40,)


def leaky():
    from bindsnet.network.nodes import LIFNodes

    return _Steps(LIFNodes(5, traces=True)), _currents(), {"train": False}


def adaptive():
    from bindsnet.network.nodes import AdaptiveLIFNodes

    return _Steps(AdaptiveLIFNodes(5)), _currents(), {"train": False}


def one_winner():
    from bindsnet.network.nodes import DiehlAndCookNodes

    return _Steps(DiehlAndCookNodes(5, traces=True, lbound=-80.0)), _currents(), {"train": False}


def izhikevich():
    from bindsnet.network.nodes import IzhikevichNodes

    return _Steps(IzhikevichNodes(5)), _currents(), {"train": False}


def conductance():
    from bindsnet.network.nodes import CurrentLIFNodes

    return _Steps(CurrentLIFNodes(5)), _currents(), {"train": False}


def response():
    from bindsnet.network.nodes import SRM0Nodes

    return _Steps(SRM0Nodes(5)), _currents(), {"train": False}


def encoding():
    from bindsnet.encoding import poisson

    class Encode(torch.nn.Module):
        def forward(self, x):
            return poisson(x, 10)

    return Encode(), (torch.rand(6) * 100,), {"train": False}


def ranks():
    from bindsnet.encoding import rank_order

    class Encode(torch.nn.Module):
        def forward(self, x):
            return rank_order(x, 10)

    return Encode(), (torch.rand(6),), {"train": False}
