"""`python -m graphmend`, which is the command `graphmend`."""

import sys

from graphmend_codemod.__main__ import run

if __name__ == "__main__":
    sys.exit(run())
