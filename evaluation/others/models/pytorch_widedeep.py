"""Tables, texts and images together."""

import torch

SOURCE = "pip:pytorch-widedeep==1.7.0"
IMPORTS = "pytorch_widedeep"
STUBS = "gensim.utils gensim.models spacy cv2 imutils fastparquet"


def _scores():
    return torch.rand(6, 1, requires_grad=True), torch.rand(6, 1)


def focal():
    from pytorch_widedeep.losses import FocalLoss

    return FocalLoss(), (torch.randn(6, 1, requires_grad=True), torch.randint(0, 2, (6, 1)).float())


def lognormal():
    from pytorch_widedeep.losses import ZILNLoss

    return ZILNLoss(), (torch.randn(6, 3, requires_grad=True), torch.rand(6, 1))


def tweedie():
    from pytorch_widedeep.losses import TweedieLoss

    return TweedieLoss(), _scores()


def huber():
    from pytorch_widedeep.losses import HuberLoss

    return HuberLoss(), _scores()


def squared_logarithms():
    from pytorch_widedeep.losses import MSLELoss

    return MSLELoss(), _scores()


def quantiles():
    from pytorch_widedeep.losses import QuantileLoss

    return QuantileLoss(), (torch.rand(6, 7, requires_grad=True), torch.rand(6, 1))


def focal_regression():
    from pytorch_widedeep.losses import FocalR_L1Loss

    return FocalR_L1Loss(), _scores()


def _table():
    return (torch.cat([torch.randint(1, 4, (6, 2)).float(), torch.randn(6, 2)], 1),)


def _columns():
    return {
        "column_idx": {"a": 0, "b": 1, "c": 2, "d": 3},
        "cat_embed_input": [("a", 4), ("b", 4)],
        "continuous_cols": ["c", "d"],
    }


def tab_transformer():
    from pytorch_widedeep.models import TabTransformer

    return TabTransformer(**_columns(), input_dim=8, n_heads=2, n_blocks=1), _table()


def saint():
    from pytorch_widedeep.models import SAINT

    return SAINT(**_columns(), input_dim=8, n_heads=2, n_blocks=1), _table()


def tab_net():
    from pytorch_widedeep.models import TabNet

    columns = _columns()
    columns["cat_embed_input"] = [("a", 4, 4), ("b", 4, 4)]
    return TabNet(**columns, n_steps=2, step_dim=4, attn_dim=4), _table()


def performer():
    from pytorch_widedeep.models import TabPerceiver

    return TabPerceiver(**_columns(), input_dim=8, n_latents=2, latent_dim=8, n_perceiver_blocks=1), _table()
