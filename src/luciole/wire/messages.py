"""What executors and nodes say to each other.

A frame is a batch of messages; one message speaks of many attempts. In one process the messages are handed over
as they are, over the network `wire.codec` makes protobuf of them.

The executor opens the connection and says `Hello`; the node answers `Welcome` or `Refuse`. Then, in any order:
executor to node `Grant`, `Acknowledge`, `Reports`, `Beat`; node to executor `Deliver`, `Confirm`,
`Cancel`, `Demand`, `BeatAnswer`; and `Drain` either way.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from luciole import limits
from luciole.model.ids import ExecutionKey, ExecutorId, NodeId
from luciole.model.instant import Instant
from luciole.model.job import RunIn
from luciole.model.outbox import Report

#: The protocol versions that this build speaks, lowest and highest.
PROTOCOL_MIN = 1
PROTOCOL_MAX = 1

#: How much of two payloads is looked at before they are compared.
_BEGINNING_BYTES = 64


class Held(NamedTuple):
    """An attempt that an executor holds: queued, running, or finished and not yet confirmed."""

    key: ExecutionKey
    attempt: int
    started_us: Instant | None  #: None while the handler has not started
    progress: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The executor introduces itself and announces what it still holds from earlier sessions."""

    protocol_min: int = PROTOCOL_MIN
    protocol_max: int = PROTOCOL_MAX
    executor_id: ExecutorId
    namespace: str = "default"
    handlers: tuple[str, ...]
    slots: int
    labels: tuple[tuple[str, str], ...] = ()
    held: tuple[Held, ...] = ()
    token: str | None = None  #: the shared token
    host: str = ""
    pid: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """The node takes the session; unknown or settled announcements are answered with `Cancel`."""

    protocol: int
    node_id: NodeId
    now_us: Instant  #: the store's clock, as the node knows it
    session_ttl_us: int  #: told nothing for so long, each end gives the session up
    peers: tuple[str, ...] = ()  #: addresses of the other live nodes
    kept: tuple[tuple[ExecutionKey, int], ...] = ()  #: see `BeatAnswer.kept`


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """The node does not take the session; `code` is an error code of `luciole.errors`."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The executor changes the credits of this node by `credits`.

    One credit is one attempt that the node may deliver. The sum over all nodes, deliveries under way included,
    never exceeds the executor's slots. A negative grant asks for credits back: the node answers with `Demand`,
    whose `unused` tells how many it still had; only these are free again.
    """

    credits: int


class Delivered(NamedTuple):
    """One attempt to run."""

    key: ExecutionKey
    attempt: int
    handler: str
    payload: bytes
    content_type: str
    fire_us: Instant  #: nominal time
    due_us: Instant
    timeout_us: int | None
    deadline_us: Instant | None
    run_in: RunIn | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver:
    """Attempts to run now; each uses up one credit."""

    attempts: tuple[Delivered, ...]

    @property
    def payload_bytes(self) -> int:
        """What its payloads take on the wire: one that several attempts share, as those of a schedule, goes once."""
        return sum({id(attempt.payload): len(attempt.payload) for attempt in self.attempts}.values())


class SharedPayloads:
    """Finds payloads of a batch that are equal: as one object they are counted once and travel once."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: dict[tuple[int, bytes], bytes] = {}

    def of(self, payload: bytes) -> bytes:
        """Return the payload, or an equal one from before.

        Nothing is hashed but its beginning: a hash of all of it takes longer than a comparison, which most often ends
        early, and of several that begin alike only the first is shared.
        """
        if len(payload) < limits.SHARED_BYTES_MIN:
            return payload
        first = self._first.setdefault((len(payload), payload[:_BEGINNING_BYTES]), payload)
        return first if first == payload else payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    """The executor has these attempts; each is `(key, attempt)`."""

    attempts: tuple[tuple[ExecutionKey, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Outcomes; the executor keeps each until a node confirms it, and repeats it elsewhere when this node is gone."""

    reports: tuple[Report, ...]


class Verdict(StrEnum):
    """What a node did with a report."""

    DURABLE = "durable"  #: recorded, now or before
    STALE = "stale"  #: an old attempt token: refused and counted
    INVALID = "invalid"  #: it can't be recorded as it is (too large, …); the node recorded a failure instead


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """The node's answer to reports: the executor may forget them. Each is `(key, attempt, verdict)`."""

    verdicts: tuple[tuple[ExecutionKey, int, Verdict], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One heartbeat a session, with all attempts that the executor still holds, whichever node delivered them.

    So a shard's new holder learns what runs, and leaves it alone.
    """

    held: tuple[Held, ...]
    number: int = 0  #: from 1 in each session; the answer repeats it


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatAnswer:
    """The node heard the heartbeat; by it the executor's session lease runs anew.

    An attempt lives by the lease of the session that delivered it. When that session is gone, the attempt lives on
    only if another node names it in `kept` before the old lease is over; else the executor ends it and reports it
    lost, because its first node may be alive behind a cut and may have given it to somebody else.
    """

    now_us: Instant
    number: int = 0  #: of the heartbeat that it answers; 0: of none, and it renews nothing
    peers: tuple[str, ...] = ()
    #: Announced attempts, `(key, attempt)`, that another session delivered and that are this node's now: it holds
    #: their shard and their token is the current one. Those with an old token are answered with `Cancel`; those of
    #: shards that this node does not hold are left to their holder.
    kept: tuple[tuple[ExecutionKey, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """End these attempts; each is `(key, attempt)`. `hard` kills where a process can be killed."""

    attempts: tuple[tuple[ExecutionKey, int], ...]
    reason: str  #: "cancelled", "stale", "deadline", "replaced"
    hard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """How much the node could deliver beyond its credits, and, answering a negative `Grant`, what it gives back."""

    waiting: int
    unused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """No new attempts, please: the sender is about to stop. Held ones are finished or returned until the grace ends."""

    grace_us: int


ToNode: TypeAlias = Hello | Grant | Acknowledge | Reports | Beat | Drain
ToExecutor: TypeAlias = Welcome | Refuse | Deliver | Confirm | Cancel | Demand | BeatAnswer | Drain
Message: TypeAlias = ToNode | ToExecutor
