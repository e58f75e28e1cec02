"""Tests that read tensors: their parts, what decides them, and what a header asks in their place."""
