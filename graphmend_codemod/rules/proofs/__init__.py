"""Proofs and recognisers that several rules share."""
