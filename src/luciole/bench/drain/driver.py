"""Who enqueues what is drained, and sees the outbox empty: it has the store's address and nothing else.

Run as `python -m luciole.bench.drain.driver`.
"""

from luciole import limits
from luciole.bench import subject
from luciole.bench.backends import Place
from luciole.bench.bare import Bare
from luciole.bench.loops import run_here
from luciole.bench.processes import Message, answer_lines
from luciole.bench.verdict import InvalidRun
from luciole.model.instant import to_datetime
from luciole.runtime.clock import SystemClock

_LOOK_US = 4 * limits.MS_US
_DRAIN_MAX_US = 120 * limits.SECOND_US


class Driver:
    """What the coordinator's verbs do here."""

    def __init__(self) -> None:
        self._clock = SystemClock()

    async def pull_bare(self, dsn: str, schema: str | None, count: int, payload_bytes: int) -> Message:
        """Measure the least SQL that pulls so many rows."""
        self._bare = await Bare.open(Place(dsn=dsn, schema=schema), self._clock)
        return {"rate": await self._bare.pull_rate(count, b"x" * payload_bytes)}

    async def fill(self, count: int, payload_bytes: int, due_us: int | None) -> Message:
        """Enqueue executions that become due at an instant, in bulk; without one they are due at once."""
        job = subject.nothing if due_us is None else subject.nothing.options(at=to_datetime(due_us))
        begun_us = self._clock.monotonic_us()
        await job.enqueue_many(["x" * payload_bytes] * count)
        took_us = self._clock.monotonic_us() - begun_us
        return {"rate": count * limits.SECOND_US / took_us, "now_us": self._clock.now_us()}

    async def wait(self) -> Message:
        """Look until no entry is left; return when that was seen, by the host's clock."""
        end_us = self._clock.monotonic_us() + _DRAIN_MAX_US
        while await self._bare.any_entry():
            if self._clock.monotonic_us() > end_us:
                raise InvalidRun("some executions did not end")
            await self._clock.sleep(_LOOK_US)
        return {"now_us": self._clock.now_us()}

    async def close(self) -> Message:
        """Disconnect."""
        await subject.app.close()
        await self._bare.close()
        return {}


if __name__ == "__main__":
    driver = Driver()
    run_here(
        answer_lines({"pull_bare": driver.pull_bare, "fill": driver.fill, "wait": driver.wait, "close": driver.close})
    )
