"""Medical imaging networks and losses."""

import torch

SOURCE = "pip:monai==1.6.1"
IMPORTS = "monai"


def focal_loss():
    from monai.losses import FocalLoss

    return FocalLoss(to_onehot_y=True), (torch.randn(2, 3, 6, 6, requires_grad=True), torch.randint(0, 3, (2, 1, 6, 6)))


def dice_focal_loss():
    from monai.losses import DiceFocalLoss

    return DiceFocalLoss(to_onehot_y=True, softmax=True), (
        torch.randn(2, 3, 6, 6, requires_grad=True),
        torch.randint(0, 3, (2, 1, 6, 6)),
    )


def generalized_dice():
    from monai.losses import GeneralizedDiceLoss

    return GeneralizedDiceLoss(to_onehot_y=True, softmax=True), (
        torch.randn(2, 3, 6, 6, requires_grad=True),
        torch.randint(0, 3, (2, 1, 6, 6)),
    )


def generalized_wasserstein():
    from monai.losses import GeneralizedWassersteinDiceLoss

    return GeneralizedWassersteinDiceLoss(torch.rand(3, 3).numpy()), (
        torch.randn(2, 3, 6, 6, requires_grad=True),
        torch.randint(0, 3, (2, 1, 6, 6)),
    )


def hausdorff():
    from monai.losses import HausdorffDTLoss

    return HausdorffDTLoss(softmax=True, to_onehot_y=True), (
        torch.randn(2, 3, 6, 6, requires_grad=True),
        torch.randint(0, 3, (2, 1, 6, 6)),
    )


def contrastive():
    from monai.losses import ContrastiveLoss

    return ContrastiveLoss(), (torch.randn(4, 8, requires_grad=True), torch.randn(4, 8))


def ssim():
    from monai.losses import SSIMLoss

    return SSIMLoss(2, win_size=5), (torch.rand(2, 1, 12, 12, requires_grad=True), torch.rand(2, 1, 12, 12))


def swin_unetr():
    from monai.networks.nets import SwinUNETR

    return SwinUNETR(in_channels=1, out_channels=2, feature_size=12, spatial_dims=2), (torch.rand(1, 1, 64, 64),)


def unetr():
    from monai.networks.nets import UNETR

    return UNETR(1, 2, (32, 32), feature_size=4, hidden_size=24, mlp_dim=32, num_heads=2, spatial_dims=2), (
        torch.rand(1, 1, 32, 32),
    )


def dynunet():
    from monai.networks.nets import DynUNet

    return DynUNet(2, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2], filters=[4, 8, 8], deep_supervision=True, deep_supr_num=1), (
        torch.rand(2, 1, 16, 16),
    )


def masked_autoencoder():
    from monai.networks.nets import MaskedAutoEncoderViT

    return MaskedAutoEncoderViT(
        1,
        (16, 16),
        (4, 4),
        hidden_size=24,
        mlp_dim=32,
        num_layers=1,
        num_heads=2,
        decoder_hidden_size=24,
        decoder_mlp_dim=32,
        decoder_num_layers=1,
        decoder_num_heads=2,
        spatial_dims=2,
    ), (torch.rand(2, 1, 16, 16),)


def vqvae():
    from monai.networks.nets import VQVAE

    return VQVAE(
        2,
        1,
        1,
        channels=(8, 8),
        num_res_layers=1,
        num_res_channels=(8, 8),
        downsample_parameters=((2, 4, 1, 1), (2, 4, 1, 1)),
        upsample_parameters=((2, 4, 1, 1, 0), (2, 4, 1, 1, 0)),
        num_embeddings=8,
        embedding_dim=8,
    ), (torch.rand(2, 1, 16, 16),)


def retinanet():
    from monai.apps.detection.networks.retinanet_network import RetinaNet, resnet_fpn_feature_extractor
    from monai.networks.nets import resnet10

    backbone = resnet_fpn_feature_extractor(
        resnet10(spatial_dims=2, n_input_channels=1, conv1_t_stride=(1, 1)), 2, False, [1, 2], None
    )
    return RetinaNet(2, 3, 3, backbone), (torch.rand(1, 1, 32, 32),)


def vista3d():
    from monai.networks.nets.vista3d import ClassMappingClassify

    return ClassMappingClassify(n_classes=4, feature_size=8), (torch.rand(1, 8, 4, 4, 4), torch.tensor([[1], [2]]))
