"""Logic tensor networks."""

import torch

SOURCE = "pip:LTNtorch==1.0.2"
IMPORTS = "ltn"


class _Formula(torch.nn.Module):
    def __init__(self, connective, quantifier):
        super().__init__()
        import ltn

        self.a = ltn.Predicate(torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Sigmoid(), torch.nn.Flatten(0)))
        self.connective, self.quantifier = connective, quantifier

    def forward(self, x, y):
        import ltn

        one, other = ltn.Variable("x", x), ltn.Variable("y", y)
        return self.quantifier([one, other], self.connective(self.a(one), self.a(other))).value


def every():
    import ltn

    return _Formula(
        ltn.Connective(ltn.fuzzy_ops.ImpliesReichenbach()),
        ltn.Quantifier(ltn.fuzzy_ops.AggregPMeanError(p=2), quantifier="f"),
    ), (torch.randn(3, 4), torch.randn(5, 4))


def some():
    import ltn

    return _Formula(
        ltn.Connective(ltn.fuzzy_ops.AndProd()), ltn.Quantifier(ltn.fuzzy_ops.AggregPMean(p=2), quantifier="e")
    ), (torch.randn(3, 4), torch.randn(5, 4))
