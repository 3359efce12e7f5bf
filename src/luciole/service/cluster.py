"""The cluster: who is alive, who holds what, how much is due, and what should worry somebody."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from importlib.util import find_spec

from luciole import limits
from luciole.model.ids import Shard
from luciole.model.instant import Instant
from luciole.model.lease import Cluster, NodeInfo
from luciole.model.realigning import is_newer
from luciole.store.reads import Backlog
from luciole.store.spi import Store, Watchful

#: What a host's clock may differ from the store's before somebody should look.
_SKEW_WARN_US = 2 * limits.SECOND_US
#: Work that has been due for so long says that nobody does it.
_LATE_WARN_US = 30 * limits.SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A live node and what it holds."""

    node: NodeInfo
    shards: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The cluster at one moment of the store's clock."""

    now_us: Instant
    nodes: tuple[NodeView, ...]
    shards: int
    shards_free: int  #: held by nobody, or by somebody whose lease is over
    backlog: Backlog


class Level(StrEnum):
    """How a finding should be taken."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    subject: str
    text: str  #: what was found, and what to do about it


async def view_cluster(store: Store, *, node_ttl_us: int) -> ClusterView:
    """Return who is alive and how much is due. Read-only."""
    cluster = await store.cluster(node_ttl_us=node_ttl_us)
    held = _held(cluster)
    return ClusterView(
        now_us=cluster.now_us,
        nodes=tuple(NodeView(node=node, shards=held.get(node.node_id, 0)) for node in cluster.nodes),
        shards=len(cluster.leases),
        shards_free=len(cluster.leases) - sum(held.values()),
        backlog=await store.backlog(),
    )


async def examine(store: Store, *, host_now_us: Instant, node_ttl_us: int) -> tuple[Finding, ...]:
    """Look at an open store and say what is fine, what is odd and what is broken.

    Args:
        store: opened, so its schema is already known to fit.
        host_now_us: this host's clock.
        node_ttl_us: unseen for so long, a node counts as gone.
    """
    view = await view_cluster(store, node_ttl_us=node_ttl_us)
    return (
        Finding(level=Level.OK, subject="store", text=f"{store.capabilities.name}, {store.shards} shards, schema fits"),
        _clock(view.now_us, host_now_us),
        *_nodes(view),
        *_backlog(view),
        *await _database(store),
        *_packages(view),
        _zone_rules(await store.zone_rules()),
    )


async def _database(store: Store) -> tuple[Finding, ...]:
    worries = await store.worries() if isinstance(store, Watchful) else ()
    return tuple(Finding(level=Level.WARN, subject=worry.subject, text=worry.text) for worry in worries)


def _held(cluster: Cluster) -> dict[str, int]:
    held: dict[str, int] = {}
    alive = {node.node_id for node in cluster.nodes}
    for lease in cluster.leases:
        if lease.holder in alive and lease.expires_us > cluster.now_us:
            held[lease.holder] = held.get(lease.holder, 0) + 1
    return held


def _clock(now_us: Instant, host_now_us: Instant) -> Finding:
    skew_us = host_now_us - now_us
    text = f"this host is {skew_us / limits.MS_US:+.0f} ms from the store"
    if abs(skew_us) > _SKEW_WARN_US:
        return Finding(level=Level.WARN, subject="clock", text=f"{text}; run a time service on this host")
    return Finding(level=Level.OK, subject="clock", text=text)


def _nodes(view: ClusterView) -> Iterator[Finding]:
    if not view.nodes:
        yield Finding(level=Level.WARN, subject="nodes", text="none is alive, nothing fires; start `luciole up`")
        return
    yield Finding(level=Level.OK, subject="nodes", text=f"{len(view.nodes)} alive")
    if view.shards_free:
        text = f"{view.shards_free} of {view.shards} are held by nobody; a live node should take them within seconds"
        yield Finding(level=Level.WARN, subject="shards", text=text)
    else:
        yield Finding(level=Level.OK, subject="shards", text=f"all {view.shards} are held")


def _backlog(view: ClusterView) -> Iterator[Finding]:
    backlog = view.backlog
    late = [
        (what, view.now_us - oldest_us)
        for what, oldest_us in (("schedules", backlog.oldest_due_us), ("executions", backlog.oldest_ready_us))
        if oldest_us is not None and view.now_us - oldest_us > _LATE_WARN_US
    ]
    for what, late_us in late:
        need = "a node" if what == "schedules" else "an executor that knows their handlers, with free slots"
        text = f"{what} are due since {late_us // limits.SECOND_US} s; they need {need}"
        yield Finding(level=Level.WARN, subject="backlog", text=text)
    if not late:
        yield Finding(level=Level.OK, subject="backlog", text=f"{backlog.open_entries} open, nothing waits for long")
    if backlog.parked:
        text = f"{backlog.parked} executions wait for repair; see `luciole executions list --state parked`"
        yield Finding(level=Level.WARN, subject="parked", text=text)


def _zone_rules(recorded: Mapping[Shard, str]) -> Finding:
    here = version("tzdata")
    shards = Counter(recorded.values())
    found = (
        ", ".join(f"{rules}: {count} shards" for rules, count in sorted(shards.items())) or "no node has planned yet"
    )
    if any(is_newer(rules, here) for rules in shards):
        text = f"cursors stand by {found}, newer than {here} here; upgrade tzdata here"
        return Finding(level=Level.WARN, subject="zones", text=text)
    if any(is_newer(here, rules) for rules in shards):
        text = f"cursors stand by {found}, older than {here} here; a node with {here} brings them up to date"
        return Finding(level=Level.WARN, subject="zones", text=text)
    return Finding(level=Level.OK, subject="zones", text=f"cursors stand by {found}")


def _packages(view: ClusterView) -> Iterator[Finding]:
    here = version("tzdata")
    others = {node.node.tzdata for node in view.nodes} - {here}
    if others:
        text = f"{here} here, {', '.join(sorted(others))} at nodes; upgrade the older ones"
        yield Finding(level=Level.WARN, subject="tzdata", text=text)
    else:
        yield Finding(level=Level.OK, subject="tzdata", text=here)
    extras = {"postgres": "asyncpg", "grpc": "grpc", "speed": "uvloop"}
    present = [extra for extra, module in extras.items() if find_spec(module) is not None]
    absent = [extra for extra in extras if extra not in present]
    text = f"installed: {', '.join(present) or 'none'}; absent: {', '.join(absent) or 'none'}"
    yield Finding(level=Level.OK, subject="extras", text=text)
