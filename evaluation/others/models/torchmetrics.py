"""Metrics; each keeps its state in buffers."""

import torch

SOURCE = "pip:torchmetrics==1.9.0"
IMPORTS = "torchmetrics"


def accuracy():
    from torchmetrics.classification import MulticlassAccuracy

    return MulticlassAccuracy(3), (torch.randn(4, 3), torch.randint(0, 3, (4,))), {"train": False}


def average_precision():
    from torchmetrics.classification import MulticlassAveragePrecision

    return (
        MulticlassAveragePrecision(3, thresholds=5),
        (torch.rand(4, 3).softmax(-1), torch.randint(0, 3, (4,))),
        {"train": False},
    )


def auroc():
    from torchmetrics.classification import BinaryAUROC

    return BinaryAUROC(), (torch.rand(8), torch.randint(0, 2, (8,))), {"train": False}


def calibration_error():
    from torchmetrics.classification import MulticlassCalibrationError

    return MulticlassCalibrationError(3), (torch.rand(8, 3).softmax(-1), torch.randint(0, 3, (8,))), {"train": False}


def ssim():
    from torchmetrics.image import StructuralSimilarityIndexMeasure

    return (
        StructuralSimilarityIndexMeasure(data_range=1.0),
        (torch.rand(1, 1, 16, 16), torch.rand(1, 1, 16, 16)),
        {"train": False},
    )


def spearman():
    from torchmetrics.regression import SpearmanCorrCoef

    return SpearmanCorrCoef(), (torch.rand(8), torch.rand(8)), {"train": False}


def retrieval_map():
    from torchmetrics.retrieval import RetrievalMAP

    return (
        RetrievalMAP(),
        (torch.rand(8), torch.randint(0, 2, (8,)), torch.tensor([0, 0, 0, 1, 1, 1, 2, 2])),
        {"train": False},
    )


def pit():
    from torchmetrics.audio import PermutationInvariantTraining
    from torchmetrics.functional.audio import scale_invariant_signal_distortion_ratio

    return (
        PermutationInvariantTraining(scale_invariant_signal_distortion_ratio),
        (torch.rand(2, 3, 40), torch.rand(2, 3, 40)),
        {"train": False},
    )


def perplexity():
    from torchmetrics.text import Perplexity

    return Perplexity(ignore_index=-100), (torch.randn(2, 5, 7), torch.randint(0, 7, (2, 5))), {"train": False}
