"""Building blocks of the tagger."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """What all blocks share: a norm, and a guard against overflow in half precision."""

    def __init__(self, hidden_size: int):
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size)

    def clamped(self, hidden_states: torch.Tensor) -> torch.Tensor:
        # clamp inf values to enable fp16 training
        if hidden_states.dtype == torch.float16 and (
            torch.isinf(hidden_states).any() or torch.isnan(hidden_states).any()
        ):
            clamp_value = torch.finfo(hidden_states.dtype).max - 1000
            hidden_states = torch.clamp(hidden_states, min=-clamp_value, max=clamp_value)
        return hidden_states


class Attention(Block):
    """Attention with one head over the tokens that are not padding."""

    def __init__(self, hidden_size: int):
        super().__init__(hidden_size)
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        scores = self.query(hidden_states) @ self.key(hidden_states).transpose(-1, -2)
        hidden = padding[:, None, :].expand(scores.shape)
        if hidden.any():
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        weights = F.softmax(scores, dim=-1)
        return self.clamped(self.norm(hidden_states + weights @ self.value(hidden_states)))


class FeedForward(Block):
    """Two linear layers; very large activations are damped."""

    def __init__(self, hidden_size: int, limit: float = 4.0):
        super().__init__(hidden_size)
        self.up = nn.Linear(hidden_size, 2 * hidden_size)
        self.down = nn.Linear(2 * hidden_size, hidden_size)
        self.limit = limit

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        inner = F.gelu(self.up(hidden_states))
        if inner.abs().mean() > self.limit:
            inner = inner * 0.5
        return self.clamped(self.norm(hidden_states + self.down(inner)))
