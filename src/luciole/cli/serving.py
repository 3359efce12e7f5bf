"""Serving: a process that runs until it is told to stop, and then drains."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from types import FrameType

import click

from luciole.runtime.collector import calm_collector

#: What a process that serves runs: it is given the event that says "stop".
Service = Callable[[asyncio.Event], Awaitable[None]]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(service: Service) -> None:
    """Run a service until it ends or a SIGINT or SIGTERM lets it drain; a second one ends it at once.

    Uses uvloop where it is installed.
    """
    calm_collector()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_served(service))


def set_up_logging(*, verbose: bool) -> None:
    """Send log lines to stderr, each with its execution where a handler wrote it."""
    from luciole.executor.log_lines import log_to_stderr  # noqa: PLC0415 - `--help` needs no executor

    log_to_stderr(logging.DEBUG if verbose else logging.INFO)


wait_for_store_option = click.option(
    "--wait-for-store", metavar="DURATION", help="How long to wait for a store that is down at the start; default 60s."
)

verbose_option = click.option("-v", "--verbose", is_flag=True, help="Log what each loop decides.")


async def _served(service: Service) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(number: int, frame: FrameType | None) -> None:
        del frame
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)  # The next one ends the process, whatever it does.
        click.echo(f"{signal.Signals(number).name}: draining; once more to stop at once", err=True)
        loop.call_soon_threadsafe(stop.set)

    before = {each: signal.signal(each, on_signal) for each in _SIGNALS}
    try:
        await service(stop)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if find_spec("uvloop") is None:
        return None
    import uvloop  # noqa: PLC0415 - an extra

    return uvloop.new_event_loop
