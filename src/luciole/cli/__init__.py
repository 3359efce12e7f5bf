"""The command line."""

import os
import signal
import sys
from collections.abc import Sequence


def main() -> None:
    """Run the `luciole` command and exit with its code."""
    try:
        from luciole.cli.run import run  # noqa: PLC0415 - who interrupts the imports gets an end in order, too

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Once is enough; what is left takes no time.
        code = interrupted(sys.argv[1:])
        sys.stdout.flush()
        sys.stderr.flush()
        # Python would end by the signal where it came inside an `exec`, of which imports have many.
        os._exit(code)
    sys.exit(code)


def interrupted(arguments: Sequence[str]) -> int:
    """Return the exit code of a command that Ctrl-C ended before it could answer that itself.

    The bench, whose last line is always a verdict, gets that line: its own code may not even be imported yet.
    """
    if next((word for word in arguments if not word.startswith("-")), None) != "bench":
        return 130
    sys.stdout.write("bench: INVALID interrupted\n")
    return 6
