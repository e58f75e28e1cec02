"""Offline reinforcement learning."""

import torch

SOURCE = "pip:d3rlpy==2.8.1"
IMPORTS = "d3rlpy"


def _encoder(action=False):
    from d3rlpy.models.torch.encoders import VectorEncoder, VectorEncoderWithAction

    return VectorEncoderWithAction((4,), 2, [8]) if action else VectorEncoder((4,), [8])


class _Error(torch.nn.Module):
    """The loss of a forwarder, whose Q functions are layers."""

    def __init__(self, forwarder, functions):
        super().__init__()
        self.forwarder, self.functions = forwarder, torch.nn.ModuleList(functions)

    def forward(self, *inputs):
        return self.forwarder.compute_error(*inputs)


def _step(action, target):
    return torch.randn(3, 4), action, torch.randn(3, 1), target, torch.zeros(3, 1)


def mean_ensemble():
    from d3rlpy.models.torch.q_functions.ensemble_q_function import DiscreteEnsembleQFunctionForwarder
    from d3rlpy.models.torch.q_functions.mean_q_function import DiscreteMeanQFunction, DiscreteMeanQFunctionForwarder

    functions = [DiscreteMeanQFunction(_encoder(), 8, 3) for _ in range(2)]
    each = [DiscreteMeanQFunctionForwarder(one, 3) for one in functions]
    inputs = _step(torch.randint(0, 3, (3, 1)), torch.randn(3, 1))
    return _Error(DiscreteEnsembleQFunctionForwarder(each, 3), functions), inputs


def quantiles():
    from d3rlpy.models.torch.q_functions.qr_q_function import ContinuousQRQFunction, ContinuousQRQFunctionForwarder

    function = ContinuousQRQFunction(_encoder(True), 8, 5)
    return _Error(ContinuousQRQFunctionForwarder(function, 5), [function]), _step(torch.randn(3, 2), torch.randn(3, 5))


def implicit_quantiles():
    from d3rlpy.models.torch.q_functions.iqn_q_function import DiscreteIQNQFunction, DiscreteIQNQFunctionForwarder

    function = DiscreteIQNQFunction(_encoder(), 8, 3, 5, 6, 8)
    inputs = _step(torch.randint(0, 3, (3, 1)), torch.randn(3, 5))
    return _Error(DiscreteIQNQFunctionForwarder(function, 5), [function]), inputs


def continuous_implicit():
    from d3rlpy.models.torch.q_functions.iqn_q_function import ContinuousIQNQFunction

    return ContinuousIQNQFunction(_encoder(True), 8, 5, 6, 8), (torch.randn(3, 4), torch.randn(3, 2))


def decision_transformer():
    from d3rlpy.models.torch.transformers import ContinuousDecisionTransformer, SimplePositionEncoding

    return ContinuousDecisionTransformer(
        _encoder(), 8, SimplePositionEncoding(8, 20), 2, 2, 5, 1, 0.0, 0.0, 0.0, torch.nn.ReLU()
    ), (
        torch.randn(2, 5, 4),
        torch.randn(2, 5, 2),
        torch.randn(2, 5, 1),
        torch.arange(5).expand(2, 5),
        torch.ones(2, 5),
    )


def discrete_transformer():
    from d3rlpy.models.torch.transformers import DiscreteDecisionTransformer, GlobalPositionEncoding

    return DiscreteDecisionTransformer(
        _encoder(), 8, GlobalPositionEncoding(8, 20, 5), 3, 2, 5, 1, 0.0, 0.0, 0.0, torch.nn.ReLU(), torch.nn.Tanh()
    ), (
        torch.randn(2, 5, 4),
        torch.randint(0, 3, (2, 5, 1)),
        torch.randn(2, 5, 1),
        torch.arange(5).expand(2, 5),
        torch.ones(2, 5),
    )


def policy():
    from d3rlpy.models.torch.policies import NormalPolicy

    return NormalPolicy(_encoder(), 8, 2, -5.0, 2.0, False), (torch.randn(3, 4),)
