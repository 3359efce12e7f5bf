"""Jobs: what to run, kept as immutable versions, and the policies that go with it."""

import json
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.ids import JobId, RouteId
from luciole.model.routing import route_id


class Misfire(StrEnum):
    """What happens to fire times that are noticed later than `misfire_after`."""

    FIRE_ONCE = "fire_once"  #: the latest missed time runs, the ledger holds the rest
    SKIP = "skip"
    CATCH_UP = "catch_up"  #: the latest `catch_up_limit` missed times run


class Overlap(StrEnum):
    """What happens when a schedule fires while an execution of it is open."""

    ALLOW = "allow"
    FORBID = "forbid"
    QUEUE_ONE = "queue_one"
    REPLACE = "replace"


#: The words of both, for signatures: a type checker knows a wrong one, an editor completes a right one.
MisfireWord: TypeAlias = Literal["fire_once", "skip", "catch_up"] | Misfire
OverlapWord: TypeAlias = Literal["allow", "forbid", "queue_one", "replace"] | Overlap


class RunIn(StrEnum):
    """Where an executor runs a handler."""

    ASYNC = "async"
    THREAD = "thread"
    PROCESS = "process"


class EntryFlag(IntEnum):
    """Bits of `Entry.flags`: what the hot path must know without reading the job."""

    AT_MOST_ONCE = 1
    RELEASES = 2  #: settling it may release a waiting successor (overlap queue_one, replace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """When a failed attempt is tried again.

    `Retry(5)` means at most five attempts after the first. The pause before retry n (1-based) is
    `min(delay_us * factor ** (n - 1), delay_max_us)`, spread by `jitter` (0.2 = ±20 %).
    """

    limit: int = 0
    delay_us: int = 1 * limits.SECOND_US
    factor: float = 2.0
    delay_max_us: int = limits.HOUR_US
    jitter: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.limit < limits.ATTEMPTS_MAX:
            raise InvalidValue(f"retry.limit: {self.limit} is outside 0 to {limits.ATTEMPTS_MAX - 1}")
        if not 0 <= self.jitter <= 1:
            raise InvalidValue(f"retry.jitter: {self.jitter} is outside 0 to 1")
        if self.factor < 1:
            raise InvalidValue(f"retry.factor: {self.factor} is below 1")
        if self.delay_us < 0 or self.delay_max_us < self.delay_us:
            raise InvalidValue("retry.delay: it must be at least 0 and at most retry.delay_max")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One version of a job: equal specs are the same version.

    The payload is opaque (I8); `content_type` says how to read it.
    """

    namespace: str = "default"
    handler: str
    payload: bytes = b""
    content_type: str = "application/json"
    retry: Retry = field(default_factory=Retry)
    timeout_us: int | None = None  #: one attempt may last this long
    at_most_once: bool = False
    losses_max: int = limits.LOSSES_MAX_DEFAULT  #: recorded losses before quarantine
    run_in: RunIn | None = None  #: None: the executor decides by the kind of function
    labels: tuple[tuple[str, str], ...] = ()  #: an executor must carry all of them
    priority: int = limits.PRIORITY_DEFAULT

    def options_text(self) -> str:
        """Return everything but namespace, handler and payload as canonical JSON text (what stores keep)."""
        # Value by value, so that equal numbers of two types are not taken for each other.
        return _options_text(
            *(self.retry.limit, self.retry.delay_us, self.retry.factor, self.retry.delay_max_us, self.retry.jitter),
            *(self.timeout_us, self.at_most_once, self.losses_max, self.run_in, self.labels, self.priority),
        )

    def route_id(self) -> RouteId:
        """Return the number of what it asks of an executor."""
        return route_id(self.namespace, self.handler, self.labels)

    def digest(self) -> bytes:
        """Return 32 bytes that are equal exactly for equal specs."""
        parts = (self.namespace, self.handler, self.content_type, self.options_text())
        hasher = sha256()
        for part in (*(text.encode() for text in parts), self.payload):
            hasher.update(len(part).to_bytes(8, "big"))
            hasher.update(part)
        return hasher.digest()


@lru_cache(maxsize=limits.JOB_OPTIONS_KEPT, typed=True)
def _options_text(*values: Any) -> str:  # noqa: ANN401 - what the cache is keyed by, each with its type
    """Return options as canonical JSON text, once for all payloads of a job."""
    *retry, timeout_us, at_most_once, losses_max, run_in, labels, priority = values
    options = {
        "retry": retry,
        "timeout_us": timeout_us,
        "at_most_once": at_most_once,
        "losses_max": losses_max,
        "run_in": run_in,
        "labels": [list(pair) for pair in labels],
        "priority": priority,
    }
    return json.dumps(options, separators=(",", ":"), sort_keys=True)


def job_spec_from_row(namespace: str, handler: str, payload: bytes, content_type: str, options: str) -> JobSpec:
    """Return the spec that a store kept (the inverse of `options_text`).

    Raises:
        InvalidValue: the options text can't be read by this version (the caller parks the schedule, I7).
    """
    try:
        read = json.loads(options)
        limit, delay_us, factor, delay_max_us, jitter = read["retry"]
        return JobSpec(
            namespace=namespace,
            handler=handler,
            payload=payload,
            content_type=content_type,
            retry=Retry(limit=limit, delay_us=delay_us, factor=factor, delay_max_us=delay_max_us, jitter=jitter),
            timeout_us=read["timeout_us"],
            at_most_once=read["at_most_once"],
            losses_max=read["losses_max"],
            run_in=None if read["run_in"] is None else RunIn(read["run_in"]),
            labels=tuple((name, value) for name, value in read["labels"]),
            priority=read["priority"],
        )
    except (ValueError, KeyError, TypeError) as problem:
        raise InvalidValue(f"job options: {options[:80]!r} can't be read by this version ({problem})") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobVersion:
    """A spec with the id that the store gave it."""

    job_id: JobId
    spec: JobSpec
