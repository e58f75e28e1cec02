"""Robotics: Lie groups, filters, control."""

import torch

SOURCE = "pip:pypose==0.9.5"
IMPORTS = "pypose"


def geodesic_loss():
    import pypose

    return pypose.module.GeodesicLoss(), (pypose.randn_SO3(4), pypose.randn_SO3(4))


def icp():
    from pypose.module import ICP

    return ICP(), (torch.randn(1, 8, 3), torch.randn(1, 8, 3)), {"train": False}


def linear_system():
    from pypose.module import LTI

    return LTI(torch.eye(3), torch.ones(3, 2), torch.eye(3), torch.zeros(3, 2)), (torch.randn(3), torch.randn(2))


def _nonlinear():
    from pypose.module import NLS

    class Pendulum(NLS):
        def state_transition(self, state, input, t=None):
            return state.cos() + input

        def observation(self, state, input, t=None):
            return state.sin() + input

    return Pendulum()


def kalman():
    from pypose.module import EKF

    return (
        EKF(_nonlinear(), torch.eye(2), torch.eye(2)),
        (torch.randn(2), torch.randn(2), torch.randn(2), torch.eye(2)),
        {"train": False},
    )


def particles():
    from pypose.module import PF

    return (
        PF(_nonlinear(), torch.eye(2), torch.eye(2), particles=20),
        (torch.randn(2), torch.randn(2), torch.randn(2), torch.eye(2)),
        {"train": False},
    )


class _Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def matrix_to_group():
    import pypose

    return _Call(lambda m: pypose.mat2SO3(m, check=False).tensor()), (torch.eye(3).repeat(2, 1, 1),), {"train": False}


def euler():
    import pypose

    return _Call(lambda a: pypose.euler2SO3(a).tensor()), (torch.randn(4, 3),), {"train": False}


def spline():
    import pypose

    return _Call(lambda p: pypose.chspline(p, 0.25)), (torch.randn(1, 5, 3),), {"train": False}
