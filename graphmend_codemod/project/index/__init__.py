"""What names of a project lead to, across its files."""
