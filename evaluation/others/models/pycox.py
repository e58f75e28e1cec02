"""Losses of survival analysis."""

import torch

SOURCE = "pip:pycox==0.3.0"
IMPORTS = "pycox.models.loss"

_DURATIONS = torch.tensor([0, 1, 2, 1])
_EVENTS = torch.tensor([1.0, 0.0, 1.0, 1.0])


def logistic_hazard():
    from pycox.models.loss import NLLLogistiHazardLoss

    return NLLLogistiHazardLoss(), (torch.randn(4, 3), _DURATIONS, _EVENTS)


def pmf():
    from pycox.models.loss import NLLPMFLoss

    return NLLPMFLoss(), (torch.randn(4, 3), _DURATIONS, _EVENTS)


def mtlr():
    from pycox.models.loss import NLLMTLRLoss

    return NLLMTLRLoss(), (torch.randn(4, 3), _DURATIONS, _EVENTS)


def pc_hazard():
    from pycox.models.loss import NLLPCHazardLoss

    return NLLPCHazardLoss(), (torch.randn(4, 3), _DURATIONS, _EVENTS, torch.rand(4))


def deep_hit():
    from pycox.models.loss import DeepHitLoss

    return DeepHitLoss(0.5, 0.1), (torch.randn(4, 2, 3), _DURATIONS, torch.tensor([1, 0, 2, 1]), torch.ones(4, 4))


def cox_cc():
    from pycox.models.loss import CoxCCLoss

    return CoxCCLoss(), (torch.randn(4, 1), [torch.randn(4, 1), torch.randn(4, 1)])


def cox_ph():
    from pycox.models.loss import CoxPHLoss

    return CoxPHLoss(), (torch.randn(4, 1), torch.rand(4), _EVENTS)
