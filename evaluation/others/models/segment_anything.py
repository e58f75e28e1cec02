"""SAM."""

import torch

SOURCE = "pip:segment_anything==1.0"
IMPORTS = "segment_anything"


def sam():
    from segment_anything.modeling import MaskDecoder, PromptEncoder, TwoWayTransformer

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.prompt = PromptEncoder(16, (4, 4), (64, 64), 8)
            self.decoder = MaskDecoder(transformer_dim=16, transformer=TwoWayTransformer(2, 16, 2, 16))

        def forward(self, image, points, labels):
            sparse, dense = self.prompt((points, labels), None, None)
            return self.decoder(image, self.prompt.get_dense_pe(), sparse, dense, True)

    return Model(), (torch.randn(1, 16, 4, 4), torch.rand(1, 2, 2) * 64, torch.tensor([[1, 0]]))


def mask_generator():
    from segment_anything.utils.amg import batched_mask_to_box, calculate_stability_score

    class Model(torch.nn.Module):
        def forward(self, masks):
            return batched_mask_to_box(masks > 0), calculate_stability_score(masks, 0.0, 0.5)

    return Model(), (torch.randn(3, 8, 8),), {"train": False}
