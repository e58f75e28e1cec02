"""Branches as `torch.where`: what they assign, the proof, the text."""
