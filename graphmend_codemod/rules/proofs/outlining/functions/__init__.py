"""Whole functions and methods as one operator, and the shapes of what they return."""
