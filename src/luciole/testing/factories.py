"""Values with defaults that work, so that a test writes only what it is about."""

from collections.abc import Sequence
from typing import Any

from luciole.limits import PRIORITY_DEFAULT, SECOND_US
from luciole.model.execution import EnqueueRequest, ExecutionState
from luciole.model.ids import ExecutionKey, ExecutorId, NodeId
from luciole.model.instant import Instant
from luciole.model.job import JobSpec, Overlap
from luciole.model.lease import Lease, NodeInfo
from luciole.model.outbox import AttemptOutcome, Entry, Settlement
from luciole.model.plan import Fire, LedgerRow, Move, Plan
from luciole.model.schedule import Cursor, NewSchedule, Policy, ScheduleSpec, unpack_entry_traits

#: Two nodes that race, and two executors.
NODE_A: NodeId = "a" * 16
NODE_B: NodeId = "b" * 16
EXECUTOR_A: ExecutorId = "e" * 16
EXECUTOR_B: ExecutorId = "f" * 16

#: The outcome of an attempt that leaves an execution in a state.
OUTCOMES = {
    ExecutionState.SUCCEEDED: AttemptOutcome.SUCCEEDED,
    ExecutionState.FAILED: AttemptOutcome.FAILED,
    ExecutionState.CANCELLED: AttemptOutcome.CANCELLED,
    ExecutionState.TIMED_OUT: AttemptOutcome.TIMED_OUT,
    ExecutionState.LOST: AttemptOutcome.LOST,
    ExecutionState.QUARANTINED: AttemptOutcome.LOST,
    ExecutionState.RETRY_WAIT: AttemptOutcome.FAILED,
    ExecutionState.READY: AttemptOutcome.RETURNED,
    ExecutionState.PARKED: AttemptOutcome.UNKNOWN_HANDLER,
}


def a_job(handler: str = "report", **fields: Any) -> JobSpec:  # noqa: ANN401 - the fields of `JobSpec`
    """Return a job."""
    return JobSpec(handler=handler, **fields)


def a_node(node_id: NodeId = NODE_A, **fields: Any) -> NodeInfo:  # noqa: ANN401 - the fields of `NodeInfo`
    """Return what a node says of itself."""
    known = {"host": "here", "pid": 1, "address": None, "version": "0", "tzdata": "0", "started_us": 0}
    return NodeInfo(node_id=node_id, **{**known, **fields})


def a_schedule(
    name: str = "nightly",
    *,
    fire_us: Instant | None,
    due_us: Instant | None = None,
    overlap: Overlap = Overlap.ALLOW,
    job: JobSpec | None = None,
    trigger: str = "every 60s",
    owner: str = "app",
    namespace: str = "default",
) -> NewSchedule:
    """Return a schedule ready to be stored; without `due_us` it has no jitter."""
    spec = ScheduleSpec(
        namespace=namespace,
        name=name,
        owner=owner,
        job=a_job() if job is None else job,
        trigger=trigger,
        policy=Policy(overlap=overlap),
    )
    return NewSchedule(spec=spec, fire_us=fire_us, due_us=fire_us if due_us is None else due_us)


def a_move(
    cursor: Cursor,
    *,
    fires: Sequence[Instant] | None = None,
    next_fire_us: Instant | None = -1,
    ledger: Sequence[LedgerRow] = (),
    ready: bool = False,
    priority: int | None = None,
) -> Move:
    """Return a move that fires once, at the cursor, and goes on a minute after its last fire.

    Args:
        cursor: as it was read.
        fires: other fire times, each due at once.
        next_fire_us: where the cursor goes; None exhausts it.
        ledger: fire times that were left out.
        ready: leave the entries READY in the store.
        priority: of the entries; None: as the cursor's policy says.
    """
    times = (cursor.fire_us,) if fires is None else tuple(fires)
    next_us = max((*times, cursor.fire_us)) + 60 * SECOND_US if next_fire_us == -1 else next_fire_us
    overlap, of_policy, flags = unpack_entry_traits(cursor.policy_id)
    return Move(
        cursor=cursor,
        fires=tuple(Fire(at_us, cursor.due_us if at_us == cursor.fire_us else at_us) for at_us in times),
        next_fire_us=next_us,
        next_due_us=next_us,
        overlap=overlap,
        priority=of_policy if priority is None else priority,
        flags=flags,
        ledger=tuple(ledger),
        ready=ready,
    )


def a_plan(leases: Sequence[Lease], *moves: Move | Cursor) -> Plan:
    """Return a chunk of moves under the leases that guard them; a bare cursor fires once."""
    made = tuple(a_move(move) if isinstance(move, Cursor) else move for move in moves)
    return Plan(moves=made, leases=tuple(leases))


def an_entry(key: ExecutionKey | None = None, **fields: Any) -> Entry:  # noqa: ANN401 - the fields of `Entry`
    """Return an entry as a dispatcher holds it."""
    key = ExecutionKey(0, 1, 0, 0) if key is None else key
    known = {
        "due_us": key.fire_us,
        "priority": PRIORITY_DEFAULT,
        "attempt": 1,
        "failures": 0,
        "job_id": 1,
        "flags": 0,
    }
    return Entry(key=key, **{**known, **fields})


def a_settlement(
    of: Entry | ExecutionKey,
    state: ExecutionState = ExecutionState.SUCCEEDED,
    **fields: Any,  # noqa: ANN401 - the fields of `Settlement`
) -> Settlement:
    """Return what an attempt of an entry (or the first one of a key) came to, with the outcome that fits the state."""
    key, attempt = (of.key, of.attempt) if isinstance(of, Entry) else (of, 1)
    known = {
        "attempt": attempt,
        "state": state,
        "outcome": OUTCOMES[state],
        "started_us": key.fire_us,
        "finished_us": key.fire_us + SECOND_US,
        "executor_id": EXECUTOR_A,
    }
    return Settlement(key=key, **{**known, **fields})


def a_request(request_id: int, job_id: int, shard: int = 0, **fields: Any) -> EnqueueRequest:  # noqa: ANN401 - its fields
    """Return a request for one execution."""
    return EnqueueRequest(**{"payload": None, "request_id": request_id, "job_id": job_id, "shard": shard, **fields})
