"""What may run under `torch.cond`."""
