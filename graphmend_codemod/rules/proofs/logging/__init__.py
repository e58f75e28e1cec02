"""Log calls and their arguments."""
