"""Proofs for what depends on constants alone, and is computed while torch.compile traces."""
