"""The command line."""

import sys

from luciole.cli.run import run


def main() -> None:
    """Run the `luciole` command and exit with its code."""
    sys.exit(run(sys.argv[1:]))
