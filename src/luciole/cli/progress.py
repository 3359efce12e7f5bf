"""Live progress: lines that stay, and one that the next replaces where somebody watches."""

from typing import IO

import click

from luciole.limits import SECOND_US
from luciole.runtime.clock import Clock

#: Without a terminal, how things stand is told so often.
_QUIET_US = 5 * SECOND_US
_ERASE = "\r\x1b[2K"


class Progress:
    """Tells how long work goes.

    Args:
        clock: measures since when.
        to: where to write, usually stderr, so that results can be piped on.
    """

    def __init__(self, clock: Clock, *, to: IO[str]) -> None:
        self._clock = clock
        self._to = to
        self._began_us = clock.monotonic_us()
        self._shown_us = -_QUIET_US
        self._live = to.isatty()
        self._open = False  #: a line that can be replaced stands there

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self.end()
        click.echo(self._line(text), file=self._to)

    def show(self, text: str) -> None:
        """Show how it stands; replaced by the next line where somebody watches, told now and then elsewhere."""
        now_us = self._clock.monotonic_us()
        if self._live:
            click.echo(_ERASE + self._line(text), file=self._to, nl=False)
            self._open = True
        elif now_us - self._shown_us >= _QUIET_US:
            self._shown_us = now_us
            click.echo(self._line(text), file=self._to)

    def end(self) -> None:
        """Leave nothing half written."""
        if self._open:
            click.echo(_ERASE, file=self._to, nl=False)
            self._open = False

    def _line(self, text: str) -> str:
        seconds = (self._clock.monotonic_us() - self._began_us) / SECOND_US
        return f"{seconds:5.1f} s  {text}"
