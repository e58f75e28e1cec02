"""Numbers that are read out of a tensor and can stay in it (GM401)."""
