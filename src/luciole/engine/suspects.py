"""Suspects: schedules whose rows could not be stored, until it is known whether they or the store are to blame."""

from dataclasses import dataclass, field

from luciole import limits
from luciole.errors import Rejected
from luciole.model.ids import ScheduleId


@dataclass(slots=True)
class Suspects:
    """Convicts a row only while the store works for others.

    A store that says `Rejected` blames the row by itself. Any other error may be the store's own fault, and then
    every row fails: a row is to blame when it fails again after a commit of others went through.
    """

    _commits: int = 0
    _since: dict[ScheduleId, int] = field(default_factory=dict)

    def __contains__(self, schedule_id: ScheduleId) -> bool:
        return schedule_id in self._since

    def __len__(self) -> int:
        return len(self._since)

    def note_success(self) -> None:
        """Note that a chunk went through."""
        self._commits += 1

    def convict(self, schedule_id: ScheduleId, problem: Exception) -> bool:
        """Return whether this row, which just failed alone, is to blame."""
        guilty = isinstance(problem, Rejected) or self._commits > self._since.get(schedule_id, self._commits)
        if guilty:
            self._since.pop(schedule_id, None)
        elif len(self._since) < limits.SUSPECTS_MAX:
            self._since.setdefault(schedule_id, self._commits)
        return guilty
