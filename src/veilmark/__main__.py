"""`python -m veilmark` is the command line."""

from veilmark.cli.main import run

if __name__ == "__main__":
    run()
