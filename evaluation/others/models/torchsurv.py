"""Losses and metrics of survival analysis."""

import torch

SOURCE = "pip:torchsurv==0.2.0"
IMPORTS = "torchsurv"

_EVENT = torch.tensor([True, False, True, True, False, True])
_TIME = torch.tensor([1.0, 2.0, 2.0, 3.0, 4.0, 5.0])


class _Calls(torch.nn.Module):
    def __init__(self, function, **options):
        super().__init__()
        self.function, self.options = function, options

    def forward(self, *inputs):
        return self.function(*inputs, **self.options)


def momentum():
    from torchsurv.loss.cox import neg_partial_log_likelihood
    from torchsurv.loss.momentum import Momentum

    return Momentum(torch.nn.Linear(4, 1), neg_partial_log_likelihood), (torch.randn(6, 4), _EVENT, _TIME)


def cox_efron():
    from torchsurv.loss.cox import neg_partial_log_likelihood

    return _Calls(neg_partial_log_likelihood), (torch.randn(6, 1), _EVENT, _TIME)


def cox_breslow():
    from torchsurv.loss.cox import neg_partial_log_likelihood

    return _Calls(neg_partial_log_likelihood, ties_method="breslow"), (torch.randn(6, 1), _EVENT, _TIME)


def cox_strata():
    from torchsurv.loss.cox import neg_partial_log_likelihood

    strata = torch.tensor([0, 0, 0, 1, 1, 1])
    return _Calls(neg_partial_log_likelihood, strata=strata), (torch.randn(6, 1), _EVENT, _TIME)


def weibull():
    from torchsurv.loss.weibull import neg_log_likelihood_weibull

    return _Calls(neg_log_likelihood_weibull), (torch.randn(6, 2), _EVENT, _TIME)


def concordance():
    from torchsurv.metrics.cindex import ConcordanceIndex

    return _Calls(ConcordanceIndex()), (torch.randn(6), _EVENT, _TIME), {"train": False}


def auc():
    from torchsurv.metrics.auc import Auc

    return _Calls(Auc()), (torch.randn(6), _EVENT, _TIME), {"train": False}


def brier():
    from torchsurv.metrics.brier_score import BrierScore

    return _Calls(BrierScore()), (torch.rand(6, 6), _EVENT, _TIME), {"train": False}
