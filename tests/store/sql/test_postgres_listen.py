"""The listening connection, whatever its driver raises."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from luciole.limits import SECOND_US
from luciole.store.sql.postgres.listen import Listener
from luciole.testing.clock import FakeClock


class ScriptedConnection:
    """Answers as a driver does; breaks at the command that it was told to break at."""

    def __init__(self, breaks_at: str | None) -> None:
        self.breaks_at = breaks_at
        self.closed = False
        self.commands: list[str] = []
        self.hear: Callable[..., None] | None = None
        self.busy = False
        self._told: list[Callable[[Any], None]] = []

    async def execute(self, command: str) -> None:
        assert not self.busy  # One command at a time.
        self.busy = True
        await asyncio.sleep(0)
        self.busy = False
        self.commands.append(command)
        if self.breaks_at is not None and command.startswith(self.breaks_at):
            raise RuntimeError("cannot switch to state 15; another operation (2) is in progress")

    async def add_listener(self, channel: str, hear: Callable[..., None]) -> None:
        await self.execute(f"LISTEN {channel}")
        self.hear = hear

    def add_termination_listener(self, told: Callable[[Any], None]) -> None:
        self._told.append(told)

    def terminate(self) -> None:
        self.closed = True
        for told in self._told:
            told(self)

    def is_closed(self) -> bool:
        return self.closed

    def get_server_pid(self) -> int:
        return 1


@pytest.mark.parametrize("breaks_at", ["LISTEN", "NOTIFY", "SELECT"])
async def test_hints_are_heard_again_after_any_surprise_of_the_driver(breaks_at: str) -> None:
    """Goal: an error that the driver documents nowhere does not end the listening for good."""
    clock = FakeClock()
    made = [ScriptedConnection(breaks_at), ScriptedConnection(None)]
    unused = iter(made)

    async def connect() -> Any:  # noqa: ANN401 - it stands in for a driver's
        return next(unused)

    listener = Listener(connect, clock=clock, chance=lambda: 0.5, channel="c")
    begun = asyncio.create_task(listener.wait(SECOND_US))
    await clock.settle()
    listener.tell(frozenset({3}))
    await clock.advance(15 * SECOND_US)  # Over a check of the line, and the pause before it is made anew.
    await begun
    assert made[0].closed
    assert made[1].hear is not None
    await listener.wait(0)  # What it told itself.
    heard = asyncio.create_task(listener.wait(SECOND_US))
    await clock.settle()
    made[1].hear(made[1], 2, "c", "7")
    assert await heard == frozenset({7})
    await listener.close()
