"""`python -m veilmark` is the command line."""

import sys

from veilmark.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
