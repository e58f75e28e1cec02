"""Detectors."""

import torch

SOURCE = "pip:ultralytics==8.4.190"
IMPORTS = "ultralytics"


def yolov8():
    from ultralytics.nn.tasks import DetectionModel

    return DetectionModel("yolov8n.yaml", nc=3, verbose=False), (torch.rand(1, 3, 64, 64),)


def yolov8_loss():
    from ultralytics.cfg import get_cfg
    from ultralytics.nn.tasks import DetectionModel

    model = DetectionModel("yolov8n.yaml", nc=3, verbose=False)
    model.args = get_cfg()
    return model, (
        {
            "img": torch.rand(2, 3, 64, 64),
            "batch_idx": torch.tensor([0.0, 0.0, 1.0]),
            "cls": torch.tensor([[0.0], [1.0], [2.0]]),
            "bboxes": torch.rand(3, 4) * 0.3 + 0.3,
        },
    )


def rtdetr():
    from ultralytics.nn.tasks import RTDETRDetectionModel

    return (
        RTDETRDetectionModel("rtdetr-resnet50.yaml", nc=3, verbose=False),
        (torch.rand(1, 3, 64, 64),),
        {"train": False},
    )


def segmentation():
    from ultralytics.nn.tasks import SegmentationModel

    return SegmentationModel("yolov8n-seg.yaml", nc=3, verbose=False), (torch.rand(1, 3, 64, 64),), {"train": False}


def pose_loss():
    from ultralytics.cfg import get_cfg
    from ultralytics.nn.tasks import PoseModel

    model = PoseModel("yolov8n-pose.yaml", nc=1, verbose=False)
    model.args = get_cfg()
    return model, (
        {
            "img": torch.rand(2, 3, 64, 64),
            "batch_idx": torch.tensor([0.0, 1.0]),
            "cls": torch.zeros(2, 1),
            "bboxes": torch.rand(2, 4) * 0.3 + 0.3,
            "keypoints": torch.rand(2, 17, 3),
        },
    )
