"""EfficientDet."""

import torch

SOURCE = "pip:effdet==0.4.1"
IMPORTS = "effdet"
STUBS = "pycocotools pycocotools.coco pycocotools.cocoeval omegaconf"


def detection_loss():
    from effdet.loss import DetectionLoss

    class Config:
        num_classes, alpha, gamma, delta, box_loss_weight, label_smoothing, legacy_focal, jit_loss = (
            3,
            0.25,
            1.5,
            0.1,
            50.0,
            0.0,
            False,
            False,
        )

    outputs = [torch.randn(1, 27, 4, 4, requires_grad=True)]
    boxes = [torch.randn(1, 36, 4, 4, requires_grad=True)]
    return DetectionLoss(Config()), (
        outputs,
        boxes,
        [torch.randint(-2, 3, (1, 4, 4, 9))],
        [torch.randn(1, 4, 4, 36)],
        torch.tensor([3.0]),
    )
