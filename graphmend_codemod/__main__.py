"""The `graphmend` command, and `python -m graphmend_codemod`, which is the same.

The command imports nothing from the current folder. `python -m` looks there first, before any line of this file runs:
in a folder that is not trusted, say `python -P -m graphmend_codemod` (Python 3.11 and later) or set PYTHONSAFEPATH.
"""

import os
import sys


def run() -> int:
    """Run the command; its exit code. An interruption is 130 from the first moment on."""
    try:
        # Without -P, Python puts the current folder first, which may be a repository with a `json.py` of its own.
        if sys.path[:1] == [os.getcwd()] and not os.path.isdir("graphmend_codemod"):
            del sys.path[0]
        from graphmend_codemod.cli.main import main

        return main()
    except KeyboardInterrupt:
        print("graphmend: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run())
