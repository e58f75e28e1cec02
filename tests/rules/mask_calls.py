"""What layers that take a mask are called with."""

from __future__ import annotations

CALLS = [
    "torch.randn(2, 3, 4)",
    "torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.long)",
    "torch.randn(2, 3, 4), torch.tensor([[0, 1, 1], [1, 1, 1]])",
    "torch.randn(2, 3, 4), torch.tensor([[1, 1, 1], [1, 0, 0]]).bool()",
    "torch.randn(2, 3, 4), torch.tensor([[0, 1, 1], [1, 1, 1]]), torch.arange(4, 7)",
    "torch.randn(2, 3, 4), torch.tensor([[1, 2, 0], [-1, 0, 1]])",
    "torch.full((2, 3, 4), float('nan')), torch.ones(2, 3, dtype=torch.long)",
]
