"""The app that the steady profiles measure: what its executor processes import, as a user's would be.

Each start is appended, before anything else happens, to a file of the executor's own: that ledger is what starts are
counted from.
"""

import asyncio
import os
import threading
from contextlib import suppress
from pathlib import Path

from luciole.app import App
from luciole.bench.attribution.heart import Heart, heart_path
from luciole.bench.steady.ledger import START, ledger_path
from luciole.executor.context import RetryLater, current
from luciole.runtime.clock import SystemClock

NAMESPACE = "bench"

#: The folder of the ledgers, one file for each executor.
LEDGERS_VARIABLE = "BENCH_LEDGERS"

app = App(name="bench", namespace=NAMESPACE)

_clock = SystemClock()
_now_us = _clock.now_us
_ledger: list[int] = []  #: the open file, once there is one


def enter_start() -> int:
    """Append this attempt to the ledger; return which attempt it is."""
    started_us = _now_us()
    context = current()
    if not _ledger:
        path = ledger_path(Path(os.environ[LEDGERS_VARIABLE]), os.getpid())
        _beat()
        _ledger.append(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    os.write(_ledger[0], START.pack(*context.key, context.attempt, context.due_us, started_us))
    return context.attempt


def _beat() -> None:
    """Watch the loop that handlers run on; where they run in threads, there is none."""
    with suppress(RuntimeError):
        Heart(heart_path(Path(os.environ[LEDGERS_VARIABLE]), os.getpid()), _clock)


@app.job
async def noop() -> None:
    """Start and end."""
    enter_start()


@app.job
async def sleep(duration_ms: int) -> None:
    """Wait, as for an answer from elsewhere."""
    enter_start()
    await asyncio.sleep(duration_ms / 1_000)


@app.job
async def cpu(duration_ms: int) -> None:
    """Keep a core busy."""
    enter_start()
    end_us = _clock.monotonic_us() + duration_ms * 1_000
    while _clock.monotonic_us() < end_us:
        pass


@app.job
async def block(duration_ms: int) -> None:
    """Wait without letting the loop go, as a handler does that calls what is not made for a loop."""
    enter_start()
    threading.Event().wait(duration_ms / 1_000)


@app.job(retry=3)
async def second_time(duration_ms: int) -> None:
    """Fail at the first attempt, work at the second."""
    attempt = enter_start()
    await asyncio.sleep(duration_ms / 1_000)
    if attempt == 1:
        raise RetryLater(0.2, "as every first attempt of this job does")
