"""Sessions with every live node: the addresses that were given, and those that nodes tell of."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias

from luciole import limits
from luciole.errors import LucioleError, Rejected, Unavailable
from luciole.executor.session import Session, SessionOwner, within
from luciole.runtime.backoff import Backoff
from luciole.runtime.chance import Chance
from luciole.runtime.clock import Clock
from luciole.wire.connection import Connection
from luciole.wire.messages import Hello

_log: Final = logging.getLogger("luciole.executor")

#: Opens a connection to an address; raises `Unavailable` when nobody answers there.
Dial: TypeAlias = Callable[[str], Awaitable[Connection]]


class LinksOwner(SessionOwner, Protocol):
    """What the links tell their executor, and ask of it."""

    def hello(self) -> Hello:
        """Return the introduction, with all that is held now."""
        ...

    def on_open(self, session: Session) -> None:
        """A node took the session."""
        ...

    def on_close(self, session: Session) -> None:
        """A session is over."""
        ...


class Links:
    """Keeps a session with each node, until nobody has told of its address for a while.

    Args:
        dial: opens connections.
        addresses: those given by the user; they are tried for ever.
        owner: hears everything.
        clock: the time.
        chance: spreads the pauses, so that executors do not come back together.
        backoff: the pauses between attempts to connect.
    """

    def __init__(
        self,
        dial: Dial,
        addresses: Sequence[str],
        owner: LinksOwner,
        clock: Clock,
        chance: Chance,
        backoff: Backoff | None = None,
    ) -> None:
        self._dial = dial
        self._given = tuple(dict.fromkeys(addresses))
        self._owner = owner
        self._clock = clock
        self._chance = chance
        self._backoff = backoff or Backoff()
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self._told_us: dict[str, int] = {}  # By address: when a node last told of it, monotonic.
        self._nodes: dict[str, str] = {}  # By address: the node that answered there last.
        self._refused: dict[str, Rejected] = {}
        self._ended = asyncio.Event()
        self._fatal: Rejected | None = None
        self.sessions: dict[str, Session] = {}  #: by node

    async def run(self) -> None:
        """Keep the sessions until `stop`.

        Raises:
            Rejected: every given address refused this executor before any took it; nothing will change by itself.
        """
        for address in self._given:
            self._keep(address)
        try:
            await self._ended.wait()
        finally:
            for task in self._keepers.values():
                task.cancel()
            await asyncio.gather(*self._keepers.values(), return_exceptions=True)
        if self._fatal is not None:
            raise self._fatal

    def stop(self) -> None:
        """End all sessions."""
        self._ended.set()

    def learn(self, peers: Sequence[str]) -> None:
        """Take the addresses that a node tells of."""
        now_us = self._clock.monotonic_us()
        for address in sorted(frozenset(peers[: limits.NODES_MAX])):
            if address in self._keepers or len(self._keepers) < limits.NODES_MAX:
                self._told_us[address] = now_us
            if address not in self._keepers and len(self._keepers) < limits.NODES_MAX:
                self._keep(address)

    def _keep(self, address: str) -> None:
        task = asyncio.create_task(self._serve(address), name=f"luciole-link-{address}")
        self._keepers[address] = task
        task.add_done_callback(lambda _: self._forget(address))

    def _forget(self, address: str) -> None:
        self._keepers.pop(address, None)
        self._told_us.pop(address, None)

    def _wanted(self, address: str) -> bool:
        """Whether a node may answer there again: nobody tells of one that is frozen, or while all are out of reach."""
        told_us = self._told_us.get(address)
        kept_us = limits.PEER_KEPT_US
        return address in self._given or (told_us is not None and self._clock.monotonic_us() - told_us < kept_us)

    async def _serve(self, address: str) -> None:
        failures = 0
        while self._wanted(address) and not self._ended.is_set():
            # Two addresses may lead to one node, which takes one session of each executor.
            if self._nodes.get(address) not in self.sessions:
                try:
                    if await self._connect(address):
                        failures = 0
                except LucioleError as problem:
                    failures += 1
                    if failures & (failures - 1) == 0:  # The first, second, fourth …: it may go on for days.
                        _log.warning("the node at %s: %s", address, problem)
                except Exception:  # noqa: BLE001 - the other nodes' sessions, and the next with this one, go on
                    failures += 1
                    _log.exception("the session with the node at %s ended by a surprise", address)
            await self._clock.wait(self._ended, self._backoff.delay_us(failures, self._chance()))

    async def _connect(self, address: str) -> bool:
        """Have one session from beginning to end; False when another one with the same node is there."""
        connection = await within(self._clock, limits.CONNECT_TIMEOUT_US, _opened(self._dial(address)))
        try:
            session = Session(address, connection, self._clock, self._owner)
            try:
                await session.open(self._owner.hello())
            except Rejected as refusal:
                self._note_refusal(address, refusal)
                raise
            self._refused.pop(address, None)
            self._nodes[address] = session.node_id
            if session.node_id in self.sessions:
                return False
            await self._live(session)
        finally:
            await connection.close()
        return True

    async def _live(self, session: Session) -> None:
        self.sessions[session.node_id] = session
        self._owner.on_open(session)
        _log.info("connected to node %s at %s", session.node_id, session.address)
        try:
            await session.run()
            _log.info("node %s at %s closed the session", session.node_id, session.address)
        except Unavailable as problem:
            _log.warning("lost node %s at %s: %s", session.node_id, session.address, problem)
        finally:
            del self.sessions[session.node_id]
            self._owner.on_close(session)

    def _note_refusal(self, address: str, refusal: Rejected) -> None:
        self._refused[address] = refusal
        if not self._nodes and all(given in self._refused for given in self._given):
            self._fatal = refusal
            self._ended.set()


async def _opened(dialing: Awaitable[Connection]) -> Connection:
    return await dialing
