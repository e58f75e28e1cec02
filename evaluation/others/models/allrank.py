"""Learning to rank."""

import torch

SOURCE = "pip:allRank==1.4.3"
IMPORTS = "allrank"
STUBS = "gcsfs google.cloud attr flatten_dict tensorboardX"


class _Call(torch.nn.Module):
    def __init__(self, function, **options):
        super().__init__()
        self.function, self.options = function, options

    def forward(self, scores, relevance):
        return self.function(scores, relevance, **self.options)


def _lists():
    relevance = torch.randint(0, 4, (3, 6)).float()
    relevance[1, 4:] = -1.0
    return torch.randn(3, 6, requires_grad=True), relevance


def approx_ndcg():
    from allrank.models.losses.approxNDCG import approxNDCGLoss

    return _Call(approxNDCGLoss), _lists()


def lambda_loss():
    from allrank.models.losses.lambdaLoss import lambdaLoss

    return _Call(lambdaLoss, weighing_scheme="ndcgLoss2_scheme", k=4), _lists()


def list_mle():
    from allrank.models.losses.listMLE import listMLE

    return _Call(listMLE), _lists()


def list_net():
    from allrank.models.losses.listNet import listNet

    return _Call(listNet), _lists()


def neural_ndcg():
    from allrank.models.losses.neuralNDCG import neuralNDCG

    return _Call(neuralNDCG), _lists()


def pointwise():
    from allrank.models.losses.pointwise import pointwise_rmse

    return _Call(pointwise_rmse, no_of_levels=4), _lists()


def rank_net():
    from allrank.models.losses.rankNet import rankNet

    return _Call(rankNet, weight_by_diff=True), _lists()


def ndcg_metric():
    from allrank.models.metrics import ndcg

    return _Call(ndcg, ats=[2, 4]), _lists(), {"train": False}
