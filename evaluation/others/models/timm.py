"""Image models."""

import torch

SOURCE = "pip:timm==1.0.31"
IMPORTS = "timm"


def cait_drop():
    import timm

    return timm.create_model(
        "vit_tiny_patch16_224",
        img_size=32,
        embed_dim=24,
        depth=2,
        num_heads=2,
        drop_path_rate=0.2,
        patch_drop_rate=0.25,
    ), (torch.rand(2, 3, 32, 32),)


def naflexvit():
    import timm

    return timm.create_model("naflexvit_base_patch16_gap", embed_dim=24, depth=2, num_heads=2), (
        torch.rand(2, 3, 32, 32),
    )


def halonet():
    import timm

    return timm.create_model("sebotnet33ts_256"), (torch.rand(2, 3, 256, 256),)


def levit():
    import timm

    return timm.create_model("levit_128s", num_classes=4), (torch.rand(2, 3, 224, 224),)


def jsd_loss():
    from timm.loss import JsdCrossEntropy

    return JsdCrossEntropy(num_splits=3), (torch.randn(6, 4, requires_grad=True), torch.randint(0, 4, (6,)))


def binary_loss():
    from timm.loss import BinaryCrossEntropy

    return BinaryCrossEntropy(sum_classes=True, target_threshold=0.1), (
        torch.randn(6, 4, requires_grad=True),
        torch.randint(0, 4, (6,)),
    )


def asymmetric_loss():
    from timm.loss import AsymmetricLossMultiLabel

    return AsymmetricLossMultiLabel(), (torch.randn(6, 4, requires_grad=True), torch.randint(0, 2, (6, 4)))


def edgenext():
    import timm

    return timm.create_model("edgenext_xx_small", num_classes=4), (torch.rand(2, 3, 64, 64),)


def volo():
    import timm

    return timm.create_model(
        "volo_d1_224", embed_dims=(16, 32, 32, 32), num_heads=(2, 2, 2, 2), layers=(1, 1, 1, 1), num_classes=4
    ), (torch.rand(2, 3, 224, 224),)
