"""The command line as a module."""

from veilmark.cli.main import run

if __name__ == "__main__":
    run()
