"""What an attribution leaves in a result; times are microseconds, rates are jobs a second."""

from typing import Literal

import msgspec


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity over the time of a repeat."""

    name: str
    unit: str
    at_s: list[float]  #: since the repeat began
    values: list[float]


class Sign(msgspec.Struct, frozen=True, kw_only=True):
    """One observation that a resource is full; signs of different kinds are independent of each other."""

    kind: Literal["gauge", "stage", "wait", "queue", "work"]
    text: str


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """What a window demanded of one resource, and the rate at which that demand would fill it."""

    name: str
    servers: float  #: how much of it works at the same time: cores, connections, 1 for a lock
    busy_us: int  #: all that was used of it in the window
    demand_us: float  #: a job
    ceiling_rate: float  #: jobs a second when nothing else limits
    used: float  #: share of it that was in use, 0 to 1
    #: It can be held while it waits for another resource, so that only a queue in front of it makes it a limit.
    passive: bool = False
    signs: list[Sign] = []


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of a window."""

    name: str
    exclusive_us: int  #: what it alone explains of the wall time
    in_flight: float = 0.0  #: how many were under way on average


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """Average active sessions of the server, by what they waited for; "CPU" are those that waited for nothing."""

    samples: int
    every_ms: int
    sessions: dict[str, float]
    log_busy: float = 0.0  #: share of the samples in which a session flushed the log, or waited for one that did


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """What one part used in a window."""

    name: str
    cpu_us: int
    run_delay_us: int | None = None  #: ready to run without a core; None where the system does not say
    rss_peak_bytes: int = 0
    main_thread_us: int | None = None  #: CPU of the thread that holds the event loop
    gc_pauses_us: int = 0
    gc_pauses: int = 0
    stall_max_us: int = 0  #: the longest that its event loop answered nobody
    stalls_us: int = 0


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The way of one job: each stage with its begin and its end, microseconds since its due time."""

    name: str
    chosen: Literal["slowest", "random"]
    stages: list[tuple[str, int, int]]


class Flame(msgspec.Struct, frozen=True, kw_only=True):
    """A profile of one process as folded stacks: from a stack, outermost first and joined by `;`, to its samples."""

    name: str
    kind: Literal["cpu", "wall"]
    samples: int
    stacks: dict[str, int]


class Attribution(msgspec.Struct, kw_only=True):
    """One window of a repeat, explained."""

    window: str
    begun_s: float = 0.0  #: since the repeat began
    jobs: int
    wall_us: int
    rate: float  #: jobs a second
    stages: list[Stage]
    explained: float  #: share of the wall time that stages explain, 0 to 1
    resources: list[Resource]  #: the lowest ceiling first
    verdict: Literal["bottleneck", "serialised", "headroom", "unproven", "unknown"]
    now: str | None = None
    next: str | None = None
    gain: float | None = None  #: how much faster it could be before the next limit: 1.5 is half as much again
    sentence: str
    processes: list[Process] = []
    waits: Waits | None = None
    missing: list[str] = []  #: what could not be observed here, and why
