"""The name of the command as a package, for `python -m graphmend`. The code is in `graphmend_codemod`."""
