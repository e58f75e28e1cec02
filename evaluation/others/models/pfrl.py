"""Reinforcement learning."""

import torch

SOURCE = "pip:pfrl==0.4.0"
IMPORTS = "pfrl"


class _Numbers(torch.nn.Module):
    """What an action value or a distribution says, as tensors."""

    def __init__(self, module, *names):
        super().__init__()
        self.module, self.names = module, names

    def forward(self, *inputs):
        made = self.module(*inputs)
        found = [getattr(made, name) for name in self.names]
        return [each() if callable(each) and not isinstance(each, torch.Tensor) else each for each in found]


def normalization():
    from pfrl.nn import EmpiricalNormalization

    return EmpiricalNormalization(4), (torch.randn(6, 4),)


def normalization_with_end():
    from pfrl.nn import EmpiricalNormalization

    return EmpiricalNormalization(4, until=20, clip_threshold=3.0), (torch.randn(6, 4),)


def noisy():
    from pfrl.nn import FactorizedNoisyLinear

    return FactorizedNoisyLinear(torch.nn.Linear(4, 5)), (torch.randn(3, 4),)


def dueling():
    from pfrl.q_functions import DuelingDQN

    return _Numbers(DuelingDQN(3), "q_values", "greedy_actions", "max"), (torch.randn(1, 4, 84, 84),)


def distributional():
    from pfrl.q_functions import DistributionalFCStateQFunctionWithDiscreteAction

    function = DistributionalFCStateQFunctionWithDiscreteAction(4, 3, 5, -1, 1, 8, 1)
    return _Numbers(function, "q_values", "greedy_actions", "max"), (torch.randn(3, 4),)


def quadratic():
    import numpy
    from pfrl.q_functions import FCQuadraticStateQFunction

    class Space:
        low, high = -numpy.ones(2, dtype=numpy.float32), numpy.ones(2, dtype=numpy.float32)

    function = FCQuadraticStateQFunction(4, 2, 8, 1, Space())
    return _Numbers(function, "greedy_actions", "max"), (torch.randn(3, 4),)


def policy():
    from pfrl.policies import GaussianHeadWithDiagonalCovariance

    head = torch.nn.Sequential(torch.nn.Linear(4, 4), GaussianHeadWithDiagonalCovariance())
    return _Numbers(head, "mean", "entropy"), (torch.randn(3, 4),)


def actor_critic():
    from pfrl.nn import Branched
    from pfrl.policies import SoftmaxCategoricalHead

    head = torch.nn.Sequential(torch.nn.Linear(4, 3), SoftmaxCategoricalHead())

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.both = Branched(head, torch.nn.Linear(4, 1))

        def forward(self, x, action):
            distribution, value = self.both(x)
            return distribution.log_prob(action), distribution.entropy(), value

    return Both(), (torch.randn(3, 4), torch.randint(0, 3, (3,)))
