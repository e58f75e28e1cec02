"""A project as its files tell it: names, classes, and what `forward` leads to."""
