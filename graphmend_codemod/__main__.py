"""`python -m graphmend_codemod`: the same as the `graphmend` command."""

import os
import sys


def _run() -> int:
    # Python puts the current folder first, which may be a repository with a `json.py` of its own.
    if sys.path[:1] == [os.getcwd()] and not os.path.isdir("graphmend_codemod"):
        del sys.path[0]
    from graphmend_codemod.cli.main import main

    return main()


if __name__ == "__main__":
    sys.exit(_run())
