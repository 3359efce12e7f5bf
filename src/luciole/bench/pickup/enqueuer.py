"""Who enqueues: it has the store's address and nothing else.

Run as `python -m luciole.bench.pickup.enqueuer` it is the third process; `single` makes it run the app, too.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from luciole import limits
from luciole.app import App
from luciole.bench import subject
from luciole.bench.loops import run_here
from luciole.bench.percentiles import Distribution
from luciole.bench.processes import Message, answer_lines
from luciole.bench.verdict import InvalidRun
from luciole.running import running
from luciole.runtime.chance import seeded_chance
from luciole.runtime.clock import SystemClock
from luciole.settings import load_settings

#: The pause between the start of one and the next: the system is idle again by then.
_PAUSE_MIN_US = 4 * limits.MS_US
_PAUSE_SPREAD_US = 8 * limits.MS_US

_START_MAX_S = 20


class _Starts(asyncio.DatagramProtocol):
    """Hears of the starts of handlers."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self.heard = 0
        self.strange = 0  #: starts of what nobody waits for: a second one of the same, say

    def expect(self, number: int) -> "asyncio.Future[int]":
        """Return what will hold the start of one, in microseconds of the machine's monotonic clock."""
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        return waiting

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Take one start."""
        del addr
        number, started_us = (int(word) for word in data.split())
        self.heard += 1
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            self.strange += 1
        else:
            waiting.set_result(started_us)


class Enqueuer:
    """What the coordinator's verbs do here."""

    def __init__(self) -> None:
        self._clock = SystemClock()

    async def listen(self) -> Message:
        """Open the port that handlers tell their starts to."""
        transport, self._starts = await asyncio.get_running_loop().create_datagram_endpoint(
            _Starts, local_addr=("127.0.0.1", 0)
        )
        port = transport.get_extra_info("sockname")[1]
        subject.tell(port)
        return {"port": port}

    async def enqueue(self, dsn: str, count: int, warm_up: int, seed: int, single: bool) -> Message:  # noqa: FBT001 - by name
        """Enqueue one after the other, each when the one before has started and the system is idle again."""
        async with self._app(dsn, single=single) as app:
            del app
            chance, drawn = seeded_chance(seed), []
            lag, sending = Distribution(), Distribution()
            for number in range(-warm_up, count):
                started = self._starts.expect(number)
                begun_us = self._clock.monotonic_us()
                await subject.note.enqueue(number)
                sent_us = self._clock.monotonic_us()
                try:
                    async with asyncio.timeout(_START_MAX_S):
                        started_us = await started
                except TimeoutError:
                    raise InvalidRun(f"enqueue {number} did not start within {_START_MAX_S} s") from None
                if number >= 0:
                    lag.add(started_us - begun_us)
                    sending.add(sent_us - begun_us)
                drawn.append(chance())
                await self._clock.sleep(_PAUSE_MIN_US + int(drawn[-1] * _PAUSE_SPREAD_US))
        return {
            "lag": lag.percentiles(),
            "sending": sending.percentiles(),
            "starts": self._starts.heard,
            "strange": self._starts.strange,
            "drawn": drawn,
            "loop": type(asyncio.get_running_loop()).__module__.partition(".")[0],
        }

    @asynccontextmanager
    async def _app(self, dsn: str, *, single: bool) -> AsyncIterator[App]:
        if single:
            async with running(subject.app, load_settings({}, dsn=dsn, namespace=subject.NAMESPACE)):
                yield subject.app
            return
        if subject.app.dsn != dsn:
            raise InvalidRun("the app of this process has another store than the node")
        try:
            yield subject.app
        finally:
            await subject.app.close()


if __name__ == "__main__":
    enqueuer = Enqueuer()
    run_here(answer_lines({"listen": enqueuer.listen, "enqueue": enqueuer.enqueue}))
