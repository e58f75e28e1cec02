"""Matching of local features."""

import torch

SOURCE = "github:cvg/LightGlue@1fd587b6f5a7a0befd31188f1e5d2f05740006d7"
IMPORTS = "lightglue"
STUBS = "cv2 kornia"


def lightglue():
    from lightglue import LightGlue

    keypoints = {
        "keypoints": torch.rand(1, 12, 2) * 60,
        "descriptors": torch.randn(1, 12, 256),
        "image_size": torch.tensor([[64.0, 64.0]]),
    }
    model = LightGlue(None, input_dim=256, n_layers=3, flash=False)
    return model, ({"image0": keypoints, "image1": {**keypoints}},), {"train": False}
