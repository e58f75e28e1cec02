"""Normalizing flows as distributions."""

import torch

SOURCE = "pip:zuko==1.6.0"
IMPORTS = "zuko"


def nsf():
    import zuko

    return _LogProb(zuko.flows.NSF(3, 2, transforms=1, hidden_features=(8,))), (torch.randn(5, 3), torch.randn(5, 2))


def naf():
    import zuko

    return _LogProb(zuko.flows.NAF(3, 2, transforms=1, hidden_features=(8,))), (torch.randn(5, 3), torch.randn(5, 2))


def cnf():
    import zuko

    return _LogProb(zuko.flows.CNF(3, 2, hidden_features=(8,))), (torch.randn(5, 3), torch.randn(5, 2))


def sospf():
    import zuko

    return _LogProb(zuko.flows.SOSPF(3, 2, transforms=1, hidden_features=(8,))), (torch.randn(5, 3), torch.randn(5, 2))


def bpf():
    import zuko

    return _LogProb(zuko.flows.BPF(3, 2, transforms=1, hidden_features=(8,))), (torch.randn(5, 3), torch.randn(5, 2))


def gf():
    import zuko

    return _LogProb(zuko.flows.GF(3, 2, transforms=1, hidden_features=(8,))), (torch.randn(5, 3), torch.randn(5, 2))


def gmm():
    import zuko

    return _LogProb(zuko.flows.GMM(3, 2, components=2, hidden_features=(8,))), (torch.randn(5, 3), torch.randn(5, 2))


class _LogProb(torch.nn.Module):
    """A flow as it is trained: the likelihood of samples."""

    def __init__(self, flow):
        super().__init__()
        self.flow = flow

    def forward(self, x, context):
        return self.flow(context).log_prob(x)
