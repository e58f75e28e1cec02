"""Policies of reinforcement learning."""

import torch

SOURCE = "pip:stable_baselines3==2.9.2"
IMPORTS = "stable_baselines3"


def _spaces(action):
    import gymnasium
    import numpy

    actions = gymnasium.spaces.Discrete(3) if action == "discrete" else gymnasium.spaces.Box(-1, 1, (2,), numpy.float32)
    return gymnasium.spaces.Box(-1, 1, (4,), numpy.float32), actions


def actor_critic():
    from stable_baselines3.common.policies import ActorCriticPolicy

    return ActorCriticPolicy(*_spaces("discrete"), lambda _: 1e-3), (torch.randn(2, 4),)


def gaussian():
    from stable_baselines3.common.policies import ActorCriticPolicy

    return ActorCriticPolicy(*_spaces("box"), lambda _: 1e-3), (torch.randn(2, 4),)


def state_dependent():
    from stable_baselines3.common.policies import ActorCriticPolicy

    return ActorCriticPolicy(*_spaces("box"), lambda _: 1e-3, use_sde=True), (torch.randn(2, 4),)


def soft_actor():
    from stable_baselines3.sac.policies import SACPolicy

    return SACPolicy(*_spaces("box"), lambda _: 1e-3), (torch.randn(2, 4),)


def q_network():
    from stable_baselines3.dqn.policies import DQNPolicy

    return DQNPolicy(*_spaces("discrete"), lambda _: 1e-3), (torch.randn(2, 4),)


def images():
    import gymnasium
    import numpy
    from stable_baselines3.common.policies import ActorCriticCnnPolicy

    pictures = gymnasium.spaces.Box(0, 255, (3, 36, 36), numpy.uint8)
    policy = ActorCriticCnnPolicy(pictures, gymnasium.spaces.Discrete(3), lambda _: 1e-3)
    return policy, (torch.randint(0, 255, (2, 3, 36, 36), dtype=torch.uint8),)
