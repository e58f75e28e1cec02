"""Recommendation."""

import torch

SOURCE = "pip:torch_rechub==0.9.0"
IMPORTS = "torch_rechub"


def _features():
    from torch_rechub.basic.features import SequenceFeature, SparseFeature

    user, item = SparseFeature("user", 10, 8), SparseFeature("item", 20, 8)
    history = SequenceFeature("history", 20, 8, pooling="concat", shared_with="item")
    negatives = SequenceFeature("negatives", 20, 8, pooling="concat", shared_with="item")
    return user, item, history, negatives


def _inputs():
    return {
        "user": torch.tensor([1, 2]),
        "item": torch.tensor([3, 4]),
        "history": torch.tensor([[1, 2, 3, 0], [4, 5, 0, 0]]),
        "negatives": torch.tensor([[7, 8, 9], [5, 6, 7]]),
    }


def comirec_sa():
    from torch_rechub.models.matching import ComirecSA

    user, item, history, negatives = _features()
    return ComirecSA([user], [history], [item], [negatives]), (_inputs(),)


def comirec_dr():
    from torch_rechub.models.matching import ComirecDR

    user, item, history, negatives = _features()
    return ComirecDR([user], [history], [item], [negatives], max_length=4), (_inputs(),)


def mind():
    from torch_rechub.models.matching import MIND

    user, item, history, negatives = _features()
    return MIND([user], [history], [item], [negatives], max_length=4), (_inputs(),)


def gru4rec():
    from torch_rechub.models.matching import GRU4Rec

    user, item, history, negatives = _features()
    return GRU4Rec([user], [history], [item], [negatives], {"dims": [8]}), (_inputs(),)


def stamp():
    from torch_rechub.models.matching import STAMP

    _, item, history, _ = _features()
    return STAMP(history, 0.1, 0.1, item), (_inputs(),)


def sine():
    from torch_rechub.models.matching import SINE

    return SINE(["history"], ["item"], ["negatives"], 20, 8, 8, 4, 2, 4), (_inputs(),)


def hstu():
    from torch_rechub.models.generative import HSTUModel

    model = HSTUModel(20, d_model=16, n_heads=2, n_layers=1, dqk=8, dv=8, max_seq_len=8)
    return model, (torch.tensor([[1, 2, 3, 4], [4, 5, 0, 0]]), torch.tensor([[0, 10, 20, 30], [0, 5, 9, 12]]))


def rqvae():
    from torch_rechub.models.generative.rqvae import RQVAEModel

    return RQVAEModel(16, [8, 8], 4, [8], sk_epsilons=[0.0, 0.003]), (torch.randn(4, 16),)


def dien():
    from torch_rechub.models.ranking import DIEN

    user, item, history, negatives = _features()
    inputs = {**_inputs(), "negatives": torch.tensor([[7, 8, 9, 0], [5, 6, 0, 0]])}
    return DIEN([user], [history], [negatives], [item], {"dims": [8]}), (inputs,)


def nce():
    from torch_rechub.basic.loss_func import NCELoss

    return NCELoss(), (torch.randn(4, 10), torch.tensor([1, 0, 3, 2]))


def in_batch():
    from torch_rechub.basic.loss_func import InBatchNCELoss

    return InBatchNCELoss(), (torch.randn(4, 8), torch.randn(10, 8), torch.tensor([1, 0, 3, 2]))


def regularization():
    from torch_rechub.basic.loss_func import RegularizationLoss

    return RegularizationLoss(0.1, 0.1, 0.1, 0.1), (torch.nn.Sequential(torch.nn.Linear(2, 2)),)
