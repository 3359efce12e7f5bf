"""Leases: who may plan and deliver a shard, and since when."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from luciole.model.ids import NodeId, Shard
from luciole.model.instant import Instant

#: The holder of a restored lease row: nobody, and yet somebody who crashed, so that the next one looks for what runs.
LOST_HOLDER: Final = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A node's time-limited hold of one shard; holder and fence are always compared together (I3)."""

    shard: Shard
    holder: NodeId
    fence: int  #: grows at every change of holder
    expires_us: Instant  #: by the store's clock
    #: The holder's own deadline, by the monotonic clock of its host: from then on a store's client sends nothing under
    #: this lease, whatever was begun. None: the store alone judges.
    trusted_until_us: int | None = field(default=None, compare=False)


def trusted_until_us(leases: Iterable[Lease]) -> int | None:
    """Return the first of the holder's own deadlines for these leases; None: there is none."""
    return min((lease.trusted_until_us for lease in leases if lease.trusted_until_us is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    """One row of the lease table as it stands, whoever holds it."""

    shard: Shard
    holder: NodeId | None
    fence: int
    expires_us: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """What a node tells of itself with each heartbeat, and what others read of it."""

    node_id: NodeId
    host: str
    pid: int
    address: str | None  #: where its gateway listens ("host:port"); None when in-process only
    version: str
    tzdata: str
    started_us: Instant
    seen_us: Instant = 0  #: the last heartbeat by the store's clock; what a node passes is ignored
    telemetry: str = "{}"  #: JSON text: gauges and counters


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What one heartbeat brings back: everybody alive, every lease, and the store's clock."""

    now_us: Instant
    nodes: tuple[NodeInfo, ...]  #: alive ones only, the caller among them, ordered by id
    leases: tuple[LeaseState, ...]  #: one for each shard, ordered
