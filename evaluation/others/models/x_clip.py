"""Contrastive training of images and texts."""

import torch

SOURCE = "pip:x-clip==0.14.4"
IMPORTS = "x_clip"


def _model(**more):
    from x_clip import CLIP

    return CLIP(
        dim_text=16, dim_image=16, dim_latent=8, num_text_tokens=30, text_enc_depth=1, text_seq_len=8, text_heads=2,
        visual_enc_depth=1, visual_image_size=16, visual_patch_size=8, visual_heads=2, **more
    )  # fmt: skip


def _inputs(**more):
    return torch.randint(0, 30, (3, 8)), torch.rand(3, 3, 16, 16)


class _Loss(torch.nn.Module):
    def __init__(self, model, **options):
        super().__init__()
        self.model, self.options = model, options

    def forward(self, text, image):
        return self.model(text, image, return_loss=True, **self.options)


def contrastive():
    return _Loss(_model()), _inputs()


def filip():
    return _Loss(_model(use_all_token_embeds=True, decoupled_contrastive_learning=True)), _inputs()


def similarity():
    return _model(visual_patch_dropout=0.0), _inputs(), {"train": False}


def masked_language():
    return _Loss(_model(use_mlm=True, text_ssl_loss_weight=0.05)), _inputs()
