"""Flow matching."""

import torch

SOURCE = "pip:torchcfm==1.0.7"
IMPORTS = "torchcfm"


class _Sample(torch.nn.Module):
    def __init__(self, matcher):
        super().__init__()
        self.matcher, self.layer = matcher, torch.nn.Linear(3, 2)

    def forward(self, x0, x1):
        t, x, u = self.matcher.sample_location_and_conditional_flow(x0, x1)
        return (self.layer(torch.cat([x, t[:, None]], -1)) - u).square().mean()


def conditional():
    from torchcfm import ConditionalFlowMatcher

    return _Sample(ConditionalFlowMatcher(0.1)), (torch.randn(4, 2), torch.randn(4, 2))


def optimal_transport():
    from torchcfm import ExactOptimalTransportConditionalFlowMatcher

    return _Sample(ExactOptimalTransportConditionalFlowMatcher(0.1)), (torch.randn(4, 2), torch.randn(4, 2))
