"""`python -m graphmend_codemod`: the same as the `graphmend` command."""

import sys

from graphmend_codemod.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
