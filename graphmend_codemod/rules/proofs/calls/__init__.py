"""Which function a call runs."""
