"""Language models of a serving stack."""

import torch

SOURCE = "pip:ibm-fms==1.13.1"
IMPORTS = "fms"


def _ids(count=12):
    return torch.randint(0, 40, (2, count))


def _filled(module):
    """With weights: the constructors leave memory as it was."""
    for each in module.parameters():
        torch.nn.init.normal_(each, std=0.1)
    return module


def llama():
    from fms.models.llama import LLaMA, LLaMAConfig

    config = LLaMAConfig(src_vocab_size=40, emb_dim=16, nheads=2, kvheads=1, nlayers=2, max_expected_seq_len=32)
    return _filled(LLaMA(config)), (_ids(),), {"train": False}


def mixtral():
    from fms.models.mixtral import Mixtral, MixtralConfig

    config = MixtralConfig(
        src_vocab_size=40, dim=16, nheads=2, kvheads=1, nlayers=2, hidden_dim=16, num_experts=4, max_expected_seq_len=32
    )
    return _filled(Mixtral(config)), (_ids(),), {"train": False}


def roberta():
    from fms.models.roberta import RoBERTa, RoBERTaConfig

    config = RoBERTaConfig(src_vocab_size=40, emb_dim=16, nheads=2, nlayers=2, max_pos=32, pad_id=0)
    return _filled(RoBERTa(config)), (_ids(),), {"train": False}


def mpnet():
    from fms.models.mpnet import Mpnet, MpnetConfig

    config = MpnetConfig(src_vocab_size=40, emb_dim=16, nheads=2, nlayers=2, max_expected_seq_len=32)
    return _filled(Mpnet(config)), (_ids(),), {"train": False}


def siglip():
    from fms.models.siglip_vision import SiglipVision, SiglipVisionConfig

    config = SiglipVisionConfig(hidden_size=16, intermediate_size=16, nlayers=2, nheads=2, image_size=32, patch_size=8)
    return _filled(SiglipVision(config)), (torch.randn(1, 3, 32, 32),), {"train": False}
