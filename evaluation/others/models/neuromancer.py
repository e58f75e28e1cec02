"""Models of systems, and their control."""

import torch

SOURCE = "pip:neuromancer==1.5.6"
IMPORTS = "neuromancer"
STUBS = "pydot pydotplus wandb mlflow cvxpy pyts.image pyts.approximation pyts.multivariate.image"


def runge_kutta():
    from neuromancer.dynamics import integrators, ode

    return integrators.RK4(ode.LorenzParam(), h=0.1), (torch.randn(4, 3),)


def fehlberg():
    from neuromancer.dynamics import integrators, ode

    return integrators.Runge_Kutta_Fehlberg(ode.BrusselatorParam(), h=0.1), (torch.randn(4, 2),)


def leap_frog():
    from neuromancer.dynamics import integrators

    return integrators.LeapFrog(torch.nn.Linear(1, 1), h=0.1), (torch.randn(4, 2),)


def splines():
    from neuromancer.modules.blocks import KANLinear

    return KANLinear(4, 3), (torch.randn(5, 4),)


def residual():
    from neuromancer.modules.blocks import ResMLP

    return ResMLP(4, 3, hsizes=[8, 8]), (torch.randn(5, 4),)


def convex():
    from neuromancer.modules.blocks import InputConvexNN

    return InputConvexNN(4, 3, hsizes=[8, 8]), (torch.randn(5, 4),)


def lyapunov():
    from neuromancer.modules.blocks import InputConvexNN, PosDef

    return PosDef(InputConvexNN(4, 1, hsizes=[8, 8])), (torch.randn(5, 4),)


def linear_maps():
    from neuromancer.slim.linear import PerronFrobeniusLinear

    return PerronFrobeniusLinear(4, 4), (torch.randn(5, 4),)


def sparse():
    from neuromancer.slim.linear import LassoLinear

    return LassoLinear(4, 3), (torch.randn(5, 4),)


def recurrent():
    from neuromancer.modules.rnn import RNN

    return RNN(4, (8,)), (torch.randn(6, 5, 4),)


def functions():
    from neuromancer.modules.function_encoder import FunctionEncoder

    basis = [torch.nn.Linear(2, 1) for _ in range(3)]
    return FunctionEncoder(basis), (torch.randn(2, 6, 2), torch.randn(2, 6, 1), torch.randn(2, 4, 2))


def activations():
    from neuromancer.modules.activations import APLU

    return APLU(), (torch.randn(5, 4),)


def exponential():
    from neuromancer.modules.activations import SoftExponential

    return SoftExponential(), (torch.rand(5, 4),)


def library():
    from neuromancer.dynamics.library import PolynomialLibrary

    class Library(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.library = PolynomialLibrary(3, max_degree=2)

        def forward(self, x):
            return self.library.evaluate(x)

    return Library(), (torch.rand(4, 3),)
