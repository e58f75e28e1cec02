"""Losses and modules for embeddings of sentences."""

import torch

SOURCE = "pip:sentence-transformers==6.2.0"
IMPORTS = "sentence_transformers"


class _Embedder(torch.nn.Module):
    """In the place of a model that was loaded: tokens to embeddings."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 8)

    def forward(self, features):
        return {**features, "sentence_embedding": self.embedding(features["input_ids"]).mean(1)}


def _texts(count):
    return [
        {"input_ids": torch.randint(0, 20, (6, 4)), "attention_mask": torch.ones(6, 4, dtype=torch.int64)}
        for _ in range(count)
    ]


def _labels():
    return torch.tensor([0, 1, 0, 1, 2, 2])


def all_triplets():
    from sentence_transformers.losses import BatchAllTripletLoss

    return BatchAllTripletLoss(_Embedder()), (_texts(1), _labels())


def hard_triplets():
    from sentence_transformers.losses import BatchHardTripletLoss

    return BatchHardTripletLoss(_Embedder()), (_texts(1), _labels())


def semi_hard_triplets():
    from sentence_transformers.losses import BatchSemiHardTripletLoss

    return BatchSemiHardTripletLoss(_Embedder()), (_texts(1), _labels())


def online_contrastive():
    from sentence_transformers.losses import OnlineContrastiveLoss

    return OnlineContrastiveLoss(_Embedder()), (_texts(2), torch.tensor([0, 1, 0, 1, 1, 0]))


def ranking():
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    return MultipleNegativesRankingLoss(_Embedder()), (_texts(2), _labels())


def cosent():
    from sentence_transformers.losses import CoSENTLoss

    return CoSENTLoss(_Embedder()), (_texts(2), torch.rand(6))


def pooling():
    from sentence_transformers.sentence_transformer.modules import Pooling

    features = {
        "token_embeddings": torch.randn(2, 5, 8),
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
    }
    return Pooling(8, ("cls", "mean", "max", "lasttoken", "weightedmean")), (features,), {"train": False}


def recurrent():
    from sentence_transformers.sentence_transformer.modules import LSTM

    features = {"token_embeddings": torch.randn(2, 5, 8), "sentence_lengths": torch.tensor([5, 3])}
    return LSTM(8, 4), (features,), {"train": False}
