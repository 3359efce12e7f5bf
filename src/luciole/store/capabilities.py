"""What a store can do, as data: the engine asks here and never for the technology."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The answers of one store."""

    name: str  #: "memory", "sqlite", "postgres", …
    durable: bool  #: survives the end of the process
    spans_shards: bool  #: one batch call may hold rows of several shards
    shared: bool  #: several processes may use it at once
    remote_hints: bool  #: `wait_hint` wakes for what other processes wrote
    transactional_enqueue: tuple[str, ...]  #: kinds of user connection that `tx=` accepts
    plan_connections: int  #: plan chunks that may be in flight at once
    plan_batch_max: int  #: moves a chunk at most
