"""Generated modules: whatever the rules make of them, eager mode must not be able to tell."""
