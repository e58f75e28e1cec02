"""DINOv2."""

import torch

SOURCE = "github:facebookresearch/dinov2@b8931f7bf91576930313be2c6d6af376033b35f0"
IMPORTS = "dinov2"
STUBS = "fvcore fvcore.common fvcore.common.checkpoint iopath"


def vision_transformer():
    from dinov2.models.vision_transformer import DinoVisionTransformer

    return DinoVisionTransformer(img_size=28, patch_size=14, embed_dim=24, depth=2, num_heads=2, drop_path_rate=0.3), (
        torch.rand(4, 3, 28, 28),
    )


def ibot_loss():
    from dinov2.loss import iBOTPatchLoss

    return iBOTPatchLoss(8), (torch.randn(2, 5, 8, requires_grad=True), torch.randn(2, 5, 8), torch.rand(2, 5) > 0.5)


def koleo_loss():
    from dinov2.loss import KoLeoLoss

    return KoLeoLoss(), (torch.randn(4, 8, requires_grad=True),)
