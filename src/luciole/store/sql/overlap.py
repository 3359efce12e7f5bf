"""Overlap: whether one more execution of a schedule may run now, must wait, or is left out. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from luciole.model.execution import ExecutionState
from luciole.model.instant import Instant
from luciole.model.job import EntryFlag
from luciole.model.outbox import EntryState, under_way
from luciole.model.plan import Fire
from luciole.model.schedule import OverlapCode
from luciole.store.sql.script import Row


class Admission(Enum):
    """What becomes of one more execution."""

    RUN = "run"
    WAIT = "wait"
    SKIP = "skip"


@dataclass(slots=True)
class Made:
    """One execution that a move brings, as it stands after the later fires of the same move."""

    fire: Fire
    state: ExecutionState
    entry_state: EntryState | None  #: None: it ended within the move
    cancel: bool = False


@dataclass(slots=True)
class Open:
    """What is open of one schedule, as a script found it in its transaction and changes it with each admission."""

    stays: bool = False  #: one releases no successor
    waits: bool = False  #: one is WAITING
    runs: bool = False  #: one may be under way
    parked: bool = False  #: one is PARKED
    asked: bool = False  #: one that was found is asked to end, and has not
    made: list[Made] = field(default_factory=list)
    unmade: int = 0  #: of those made, how many a later fire of the same move ended

    def gives_way(self, overlap: OverlapCode) -> bool:
        """Whether all that was found open is to be cancelled before one more is admitted."""
        return overlap is OverlapCode.REPLACE and not self.stays and (self.waits or self.runs or self.parked)

    def cancelled(self, left: Iterable[ExecutionState]) -> None:
        """Take what became of those that were found open: some have ended, and release nobody any more."""
        self.asked = any(state is not ExecutionState.CANCELLED for state in left)
        self.waits, self.runs, self.parked = False, self.asked, False

    def admit(self, overlap: OverlapCode, now_us: Instant) -> Admission:
        """Decide for one more execution; with REPLACE those that the move itself has made come to their end.

        Args:
            overlap: the schedule's policy.
            now_us: the store's clock, read under the lock of the schedule's cursor.
        """
        if overlap is OverlapCode.ALLOW or not (self.stays or self.waits or self.runs or self.parked):
            return Admission.RUN
        # Only an entry with RELEASES lets a successor go: behind another one (of an earlier policy) it would
        # wait for ever.
        if overlap is OverlapCode.FORBID or self.stays:
            return Admission.SKIP
        if overlap is OverlapCode.QUEUE_ONE:
            return Admission.SKIP if self.waits else Admission.WAIT
        self._unmake(now_us)
        return Admission.WAIT if self.runs else Admission.RUN

    def fire(self, fire: Fire, overlap: OverlapCode, now_us: Instant, *, ready: bool) -> bool:
        """Admit a fire of the planner and note what it makes; False: overlap leaves it out."""
        admission = self.admit(overlap, now_us)
        if admission is Admission.SKIP:
            return False
        if admission is Admission.WAIT:
            self.made.append(Made(fire, ExecutionState.QUEUED, EntryState.WAITING))
            self.waits = True
            return True
        if ready:
            self.made.append(Made(fire, ExecutionState.READY, EntryState.READY))
        else:
            self.made.append(Made(fire, ExecutionState.HELD, EntryState.HELD))
        self.runs = True
        if overlap in {OverlapCode.ALLOW, OverlapCode.FORBID}:
            self.stays = True
        return True

    def _unmake(self, now_us: Instant) -> None:
        self.waits, self.runs = False, self.asked
        for made in self.made:
            if made.entry_state is None:
                continue
            if under_way(made.entry_state, made.fire.due_us, now_us, delivered=False):
                made.cancel = self.runs = True
                continue
            self.unmade += made.entry_state is not EntryState.WAITING
            made.state, made.entry_state = ExecutionState.CANCELLED, None


def flags_under(overlap: OverlapCode, flags: int) -> int:
    """Return entry flags as a policy needs them: what may have a successor releases it."""
    if overlap in {OverlapCode.QUEUE_ONE, OverlapCode.REPLACE}:
        return flags | EntryFlag.RELEASES
    return flags


def open_of_row(row: Row) -> Open:
    """Return what `open_of_schedules` found of one schedule."""
    _, stays, waits, runs, parked = row
    return Open(stays=bool(stays), waits=bool(waits), runs=bool(runs), parked=bool(parked))
