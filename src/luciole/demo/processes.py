"""The processes of the demo: real ones, started by the real command line, and gone with the demo."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from luciole.errors import Fatal
from luciole.limits import MS_US, SECOND_US
from luciole.runtime.clock import Clock

#: What a process gets to drain before it is killed.
_DRAIN_S = 10
_LOG_LINES = 8


class DemoProcess:
    """One `luciole` process, its output in a file."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process
        self._log = log

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.returncode is None

    def check(self) -> None:
        """Make sure that it still runs.

        Raises:
            Fatal: it ended by itself; the message holds the end of its output.
        """
        if not self.alive:
            tail = " | ".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:])
            raise Fatal(f"the {self.name} ended by itself with {self._process.returncode}: {tail}")

    async def kill(self) -> None:
        """End it as a crash would, with SIGKILL."""
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Let it drain, and kill it when that takes too long."""
        if not self.alive:
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), _DRAIN_S)
        except TimeoutError:
            await self.kill()


async def start_process(name: str, arguments: Sequence[str], *, folder: Path, dsn: str) -> DemoProcess:
    """Start `luciole ARGUMENTS` in a folder.

    Args:
        name: for messages and the log's name.
        arguments: of the command line.
        folder: where its log goes.
        dsn: of the store, by the environment.
    """
    log = folder / f"{name.replace(' ', '-')}.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "luciole",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "LUCIOLE_DSN": dsn},
            start_new_session=True,  # Ctrl-C reaches the demo alone, which then ends them in order.
        )
    return DemoProcess(name, process, log)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""


async def wait_for_address(file: Path, process: DemoProcess, clock: Clock) -> str:
    """Return the address that a node wrote once it listens.

    Raises:
        Fatal: the node ended, or did not listen in 20 s.
    """
    end_us = clock.monotonic_us() + 20 * SECOND_US
    while clock.monotonic_us() < end_us:
        process.check()
        if address := _read(file):
            return address
        await clock.sleep(20 * MS_US)
    raise Fatal(f"the {process.name} did not listen within 20 s")
