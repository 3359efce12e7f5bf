"""Nodes and executors as a user starts them: the product's own command line, in processes of their own."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from luciole.bench.leash import leash
from luciole.bench.verdict import InvalidRun
from luciole.limits import MS_US, SECOND_US
from luciole.runtime.clock import Clock

_START_MAX_US = 30 * SECOND_US
_DRAIN_S = 15
_LOG_CHARACTERS = 2_000


class ClusterProcess:
    """One process; what it says goes to a file."""

    def __init__(self, name: str, child: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.pid = child.pid
        self._child = child
        self._log = log

    def check(self) -> None:
        """Make sure that it still runs.

        Raises:
            InvalidRun: it ended by itself; its last words are in the message.
        """
        if self._child.returncode is not None:
            words = self._log.read_text(encoding="utf-8", errors="replace")[-_LOG_CHARACTERS:]
            raise InvalidRun(f"the {self.name} ended by itself with {self._child.returncode}: {words}")

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL has ended it."""
        return self._child.returncode == -signal.SIGKILL

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; one that is gone already gets none."""
        with suppress(ProcessLookupError):
            self._child.send_signal(number)

    async def kill(self) -> None:
        """End it at once, as a crash would."""
        self.signal(signal.SIGKILL)
        await self._child.wait()

    async def stop(self) -> None:
        """Let it drain; kill it when that takes too long."""
        if self._child.returncode is None:
            self.signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(_DRAIN_S):
                    await self._child.wait()
            except TimeoutError:
                await self.kill()


class Cluster:
    """The processes around one store; leaving the context ends them all."""

    def __init__(self, dsn: str, folder: Path, clock: Clock, environment: Mapping[str, str] | None = None) -> None:
        """Prepare it; nothing is started yet.

        Args:
            dsn: the store, migrated.
            folder: for logs and addresses.
            clock: passes the pauses while something starts.
            environment: more of it, for all processes.
        """
        self._folder = folder
        self._clock = clock
        own = {name: value for name, value in os.environ.items() if not name.startswith("LUCIOLE_")}
        self._environment = {**own, "LUCIOLE_DSN": dsn, **(environment or {})}  # No settings of the user's: defaults.
        self._processes: list[ClusterProcess] = []
        self._started = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for process in reversed(self._processes):  # Executors first, so that they can tell their nodes.
            process.signal(signal.SIGCONT)
            await (process.kill() if kind else process.stop())

    async def start_node(
        self, *, module: str = "luciole", arguments: Sequence[str] = ("node",)
    ) -> tuple[ClusterProcess, str]:
        """Start a node that listens on loopback; return it and its address.

        Raises:
            InvalidRun: it does not listen in time.
        """
        self._started += 1
        file = self._folder / f"node-{self._started}.address"
        process = await self._start(
            f"node {self._started}", module, (*arguments, "--listen", "127.0.0.1:0", "--address-file", str(file))
        )
        end_us = self._clock.monotonic_us() + _START_MAX_US
        while not file.exists():
            process.check()
            if self._clock.monotonic_us() > end_us:
                raise InvalidRun(f"the {process.name} does not listen")
            await self._clock.sleep(20 * MS_US)
        return process, file.read_text(encoding="utf-8").strip()

    async def start_app(self, app: str) -> ClusterProcess:
        """Start node, gateway and executor of an app in one process."""
        self._started += 1
        return await self._start(f"app {self._started}", "luciole", ("up", app))

    async def start_executor(self, app: str, addresses: Sequence[str], *, slots: int = 100) -> ClusterProcess:
        """Start an executor of an app that knows these nodes."""
        self._started += 1
        nodes = [word for address in addresses for word in ("--node", address)]
        arguments = ("executor", app, *nodes, "--slots", str(slots), "--no-declare")
        return await self._start(f"executor {self._started}", "luciole", arguments)

    def check(self) -> None:
        """Make sure that all of them still run.

        Raises:
            InvalidRun: one ended by itself.
        """
        for process in self._processes:
            process.check()

    async def kill(self) -> None:
        """End all of them at once."""
        for process in self._processes:
            await process.kill()
        self._processes.clear()

    def forget(self, process: ClusterProcess) -> None:
        """Let a process be gone: it was killed on purpose."""
        self._processes.remove(process)

    async def _start(self, name: str, module: str, arguments: Sequence[str]) -> ClusterProcess:
        log = self._folder / f"{name.replace(' ', '-')}.log"
        with log.open("ab") as output:
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
                start_new_session=True,  # Ctrl-C reaches the bench alone, which ends them in order.
                preexec_fn=leash(),
            )
        process = ClusterProcess(name, child, log)
        self._processes.append(process)
        return process
