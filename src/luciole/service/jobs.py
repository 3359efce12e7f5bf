"""Jobs: from the options that a user writes to the version that a store keeps."""

from collections.abc import Mapping
from typing import Literal, TypeAlias, TypedDict

from luciole import limits
from luciole.errors import InvalidValue, UnknownHandler
from luciole.model.duration import Duration, duration_us
from luciole.model.job import EntryFlag, JobSpec, JobVersion, Retry, RunIn
from luciole.service.checking import nearest, read_choice, read_labels, read_name, read_priority, refuse_unknown
from luciole.store.reads import JobView
from luciole.store.spi import ReadStore, Store

RunsIn: TypeAlias = Literal["async", "thread", "process"]


class JobOptions(TypedDict, total=False):
    """What `@app.job(...)` takes."""

    name: str  #: the durable name of the handler; default: the app's name, a dot, the function's name
    retry: Retry | int  #: after failures; an int is the number of retries, with the default pauses
    timeout: Duration  #: one attempt may last this long
    at_most_once: bool  #: never start twice: what is lost stays lost, in a state of its own
    losses_max: int  #: executors that may die with it before it is quarantined
    run_in: RunsIn  #: where the handler runs; default: by the kind of function
    labels: Mapping[str, str]  #: only executors that carry all of them run it
    priority: int  #: 0 to 9, the highest first; default 5


#: The names of `JobOptions`.
JOB_OPTIONS = frozenset(JobOptions.__annotations__)


def read_job_options(handler: str, options: JobOptions, *, namespace: str = "default") -> JobSpec:
    """Return the version of a job that these options describe, without a payload.

    Args:
        handler: the handler's name.
        options: as the user wrote them.
        namespace: of the app.

    Raises:
        InvalidValue: an unknown option, or a wrong value; the message names the handler and the option.
    """
    refuse_unknown(f"job {handler!r}", options, JOB_OPTIONS)
    run_in = options.get("run_in")
    timeout = options.get("timeout")
    timeout_us = None if timeout is None else duration_us(timeout, field=f"{handler}: timeout")
    if timeout_us == 0:
        raise InvalidValue(f"{handler}: timeout: it is 0; leave it out for no time limit")
    return JobSpec(
        namespace=namespace,
        handler=read_name(handler, field="handler name"),
        retry=_read_retry(options.get("retry", 0), field=f"{handler}: retry"),
        timeout_us=timeout_us,
        at_most_once=_read_flag(options.get("at_most_once", False), field=f"{handler}: at_most_once"),
        losses_max=_read_losses(options.get("losses_max", limits.LOSSES_MAX_DEFAULT), field=f"{handler}: losses_max"),
        run_in=None if run_in is None else read_choice(RunIn, run_in, field=f"{handler}: run_in"),
        labels=read_labels(options.get("labels", {}), field=f"{handler}: labels"),
        priority=read_priority(options.get("priority", limits.PRIORITY_DEFAULT), field=f"{handler}: priority"),
    )


def entry_flags(spec: JobSpec) -> int:
    """Return the bits that an entry of this job carries; the store adds what an overlap policy needs."""
    return EntryFlag.AT_MOST_ONCE if spec.at_most_once else 0


async def find_job(store: Store, namespace: str, handler: str) -> JobVersion:
    """Return the latest version of a job.

    Raises:
        UnknownHandler: no app has declared one of this name; a near name is told.
    """
    known = {view.handler: view for view in await list_jobs(store, namespace=namespace)}
    if handler not in known:
        raise UnknownHandler(f"handler {handler!r}: no app has declared it; {nearest(handler, known)}")
    job_id = known[handler].job_id
    versions = await store.load_jobs([job_id])
    if job_id not in versions:
        raise UnknownHandler(f"handler {handler!r}: its latest version can't be read here; upgrade this installation")
    return versions[job_id]


async def list_jobs(store: ReadStore, *, namespace: str | None = None) -> tuple[JobView, ...]:
    """Return the latest version of each job, ordered by namespace and handler; at most a page."""
    return await store.list_jobs(namespace, limit=limits.PAGE_MAX)


def _read_retry(value: object, *, field: str) -> Retry:
    if isinstance(value, Retry):
        return Retry(
            limit=value.limit,
            delay_us=value.delay_us,
            factor=value.factor,
            delay_max_us=value.delay_max_us,
            jitter=value.jitter,
        )
    if isinstance(value, int) and not isinstance(value, bool):
        return Retry(limit=value)
    raise InvalidValue(f"{field}: a {type(value).__name__} is no retry policy; pass Retry(5), or 5")


def _read_flag(value: object, *, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue(f"{field}: a {type(value).__name__} is neither True nor False")
    return value


def _read_losses(value: object, *, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < limits.ATTEMPTS_MAX:
        raise InvalidValue(f"{field}: {value!r} is no whole number from 1 to {limits.ATTEMPTS_MAX - 1}")
    return value
