"""CLIP."""

import torch

SOURCE = "pip:open_clip_torch==3.3.0"
IMPORTS = "open_clip"
STUBS = "ftfy"


def _model(**vision):
    from open_clip.model import CLIP

    return CLIP(
        16,
        {"image_size": 32, "patch_size": 8, "width": 16, "layers": 2, "head_width": 8, **vision},
        {"context_length": 8, "vocab_size": 40, "width": 16, "heads": 2, "layers": 1},
    )


def patch_dropout():
    return _model(patch_dropout=0.5), (torch.rand(2, 3, 32, 32), torch.randint(0, 40, (2, 8)))


def coca():
    from open_clip.coca_model import CoCa

    model = CoCa(
        16,
        {"context_length": 8, "vocab_size": 40, "width": 16, "heads": 2, "layers": 1},
        {"context_length": 8, "vocab_size": 40, "width": 16, "heads": 2, "layers": 1, "mlp_ratio": 2},
        {
            "image_size": 32,
            "patch_size": 8,
            "width": 16,
            "layers": 1,
            "head_width": 8,
            "attentional_pool": True,
            "attn_pooler_heads": 2,
            "output_tokens": True,
        },
    )
    return model, (torch.rand(2, 3, 32, 32), torch.randint(0, 40, (2, 8)))


def clip_loss():
    from open_clip.loss import ClipLoss

    return ClipLoss(cache_labels=True), (torch.randn(4, 8, requires_grad=True), torch.randn(4, 8), torch.tensor(10.0))
