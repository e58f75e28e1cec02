"""Rotations, poses and choices of the largest."""

import torch

SOURCE = "pip:theseus-ai==0.2.3"
IMPORTS = "theseus"
STUBS = "sksparse.cholmod urdf_parser_py.urdf"


def rotation():
    import theseus

    class Rotation(torch.nn.Module):
        def forward(self, x):
            return theseus.SO3.exp_map(x).log_map()

    return Rotation(), (torch.randn(3, 3),)


def pose():
    import theseus

    class Pose(torch.nn.Module):
        def forward(self, x):
            return theseus.SE3.exp_map(x).log_map()

    return Pose(), (torch.randn(3, 6),)


def top_choices():
    from theseus.third_party.lml import LML

    return LML(N=2), (torch.randn(3, 5),)
