"""One pull request per repository: opened, updated, left alone or closed."""
