"""The tagger."""

import logging
import warnings
from typing import Optional

import torch
from torch import nn

from tiny_model.layers import Attention, FeedForward

logger = logging.getLogger(__name__)


class Tagger(nn.Module):
    """A tag for every token."""

    def __init__(self, vocabulary: int = 64, hidden_size: int = 32, tags: int = 5, layers: int = 2):
        super().__init__()
        self.vocabulary = vocabulary
        self.embedding = nn.Embedding(vocabulary, hidden_size)
        self.attention = nn.ModuleList(Attention(hidden_size) for _ in range(layers))
        self.feed_forward = nn.ModuleList(FeedForward(hidden_size) for _ in range(layers))
        self.classifier = nn.Linear(hidden_size, tags)

    def forward(self, token_ids: torch.LongTensor, padding: Optional[torch.Tensor] = None) -> torch.Tensor:
        if (token_ids >= self.vocabulary).any():
            raise ValueError("token_ids holds numbers that the vocabulary does not have")
        if padding is None:
            logger.warning("No padding mask was given: every token is attended to.")
            padding = torch.zeros_like(token_ids, dtype=torch.bool)
        if padding.dtype != torch.bool:
            warnings.warn("padding should be a bool tensor", FutureWarning)
            padding = padding.bool()

        hidden_states = self.embedding(token_ids)
        for attention, feed_forward in zip(self.attention, self.feed_forward):
            hidden_states = attention(hidden_states, padding)
            hidden_states = feed_forward(hidden_states)
        return self.classifier(hidden_states)
