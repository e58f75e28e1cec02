"""What the commands ask of the evaluation stage, which alone imports torch."""
