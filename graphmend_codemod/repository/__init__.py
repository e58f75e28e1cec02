"""Git: the user's repository as it is found, work trees of our own, commits on a new branch."""
