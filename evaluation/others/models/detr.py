"""DETR: detection with a transformer, its matcher and its loss."""

import torch

SOURCE = "github:facebookresearch/detr@29901c51d7fe8712168b8d0d64351170bc0f83e0"
IMPORTS = "models"


def criterion():
    from models.detr import SetCriterion
    from models.matcher import HungarianMatcher

    outputs = {
        "pred_logits": torch.randn(2, 6, 4, requires_grad=True),
        "pred_boxes": torch.rand(2, 6, 4, requires_grad=True),
    }
    targets = [
        {"labels": torch.tensor([0, 2]), "boxes": torch.rand(2, 4)},
        {"labels": torch.tensor([1]), "boxes": torch.rand(1, 4)},
    ]
    weights = {"loss_ce": 1.0, "loss_bbox": 5.0, "loss_giou": 2.0}
    return SetCriterion(3, HungarianMatcher(1.0, 5.0, 2.0), weights, 0.1, ["labels", "boxes", "cardinality"]), (
        outputs,
        targets,
    )


def matcher():
    from models.matcher import HungarianMatcher

    outputs = {"pred_logits": torch.randn(2, 6, 4), "pred_boxes": torch.rand(2, 6, 4)}
    targets = [
        {"labels": torch.tensor([0, 2]), "boxes": torch.rand(2, 4)},
        {"labels": torch.tensor([1]), "boxes": torch.rand(1, 4)},
    ]
    return HungarianMatcher(1.0, 5.0, 2.0), (outputs, targets), {"train": False}


def post_process():
    from models.detr import PostProcess

    outputs = {"pred_logits": torch.randn(2, 6, 4), "pred_boxes": torch.rand(2, 6, 4)}
    return PostProcess(), (outputs, torch.tensor([[40, 60], [50, 50]])), {"train": False}
