"""Requests: from `options(...).enqueue(...)` to what a store makes durable."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.duration import Duration, duration_us
from luciole.model.execution import EnqueueRequest, request_shard
from luciole.model.ids import JobId
from luciole.model.instant import Instant, from_datetime
from luciole.model.job import JobSpec
from luciole.model.routing import labels_mark, route_of
from luciole.service.checking import read_labels, read_name, read_priority, refuse_unknown
from luciole.service.jobs import entry_flags


class RequestOptions(TypedDict, total=False):
    """What `job.options(...)` takes."""

    delay: Duration  #: not before so much time from now
    at: datetime  #: not before this aware datetime
    priority: int  #: 0 to 9, the highest first; default: the job's
    key: str  #: the same key is the same execution
    labels: Mapping[str, str]  #: instead of the job's
    deadline: Duration | datetime  #: not started after it, ended when still running at it
    tx: Any  #: the user's own connection or session, whose transaction brings the execution


#: The names of `RequestOptions`.
REQUEST_OPTIONS = frozenset(RequestOptions.__annotations__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestChoices:
    """Checked options of one request."""

    delay_us: int = 0
    at_us: Instant | None = None
    priority: int | None = None
    key: str | None = None
    labels: tuple[tuple[str, str], ...] | None = None
    deadline_us: Instant | None = None
    deadline_after_us: int | None = None  #: from now, when it was given as a duration
    tx: Any = None


#: No options at all.
PLAIN = RequestChoices()


def read_request_options(handler: str, options: RequestOptions) -> RequestChoices:
    """Check the options of a request.

    Raises:
        InvalidValue: an unknown option, a wrong value, or two that exclude each other.
    """
    refuse_unknown(f"{handler}.options", options, REQUEST_OPTIONS)
    if "delay" in options and "at" in options:
        raise InvalidValue(f"{handler}.options: delay and at exclude each other; keep one")
    deadline = options.get("deadline")
    by_moment = isinstance(deadline, datetime)
    return RequestChoices(
        delay_us=duration_us(options.get("delay", 0), field="delay"),
        at_us=None if "at" not in options else _read_moment(options["at"], field="at"),
        priority=None if "priority" not in options else read_priority(options["priority"]),
        key=None if "key" not in options else read_name(options["key"], field="key", length_max=limits.KEY_LENGTH_MAX),
        labels=None if "labels" not in options else read_labels(options["labels"]),
        deadline_us=_read_moment(deadline, field="deadline") if by_moment else None,
        deadline_after_us=None if deadline is None or by_moment else duration_us(deadline, field="deadline"),
        tx=options.get("tx"),
    )


class RequestForm:
    """What the requests of one job version with the same options have in common, found once for all of them.

    Args:
        spec: the job version, without a payload.
        job_id: its id.
        shards: of the store.
        choices: checked options.
        now_us: what a deadline given as a duration counts from.
    """

    __slots__ = ("_job_id", "_key", "_namespace", "_rest", "_shards")

    def __init__(
        self, spec: JobSpec, job_id: JobId, *, shards: int, choices: RequestChoices = PLAIN, now_us: Instant = 0
    ) -> None:
        deadline_us, labels = choices.deadline_us, spec.labels if choices.labels is None else choices.labels
        if choices.deadline_after_us is not None:
            deadline_us = now_us + choices.deadline_after_us
        self._namespace = spec.namespace
        self._key = choices.key
        self._shards = shards
        self._job_id = job_id
        blank = EnqueueRequest(
            request_id=0,
            shard=0,
            job_id=job_id,
            payload=None,
            namespace=spec.namespace,
            fire_us=choices.at_us,
            delay_us=choices.delay_us,
            priority=spec.priority if choices.priority is None else choices.priority,
            flags=entry_flags(spec),
            key=choices.key,
            labels=labels,
            deadline_us=deadline_us,
            route=route_of(spec.route_id(), labels_mark(labels)),
        )
        self._rest = blank[4:]  # Behind the payload.

    def request(self, payload: bytes, request_id: int) -> EnqueueRequest:
        """Return one execution by request, ready to be stored.

        Args:
            payload: the encoded call.
            request_id: from an id segment.
        """
        shard = request_shard(self._namespace, self._key, request_id, self._shards)
        return EnqueueRequest(request_id, shard, self._job_id, payload, *self._rest)


def _read_moment(value: object, *, field: str) -> Instant:
    if not isinstance(value, datetime):
        raise InvalidValue(f"{field}: a {type(value).__name__} is no datetime; pass an aware datetime")
    return from_datetime(value, field=field)
