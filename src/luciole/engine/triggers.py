"""Triggers at hand: read once from the store, parsed once, kept up to a bound."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from luciole import limits
from luciole.errors import Rejected
from luciole.model.ids import TriggerId
from luciole.model.next_fire_memo import NextFireMemo
from luciole.model.trigger import Trigger, trigger_from_spec
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import PlanStore


@dataclass(slots=True)
class TriggerShelf:
    """Parsed triggers by id, and the memo of their next fires.

    A trigger that can't be read is kept as the reason, so that its schedules are parked (I7) without another look.
    """

    memo: NextFireMemo = field(default_factory=NextFireMemo)
    _kept: dict[TriggerId, Trigger | str] = field(default_factory=dict)

    async def load(
        self, store: PlanStore, telemetry: Telemetry, ids: Collection[TriggerId]
    ) -> Mapping[TriggerId, Trigger | str]:
        """Return the triggers of these ids; the mapping may hold others, and lacks ids that do not exist."""
        missing = [trigger_id for trigger_id in ids if trigger_id not in self._kept]
        if missing:
            if len(self._kept) + len(missing) > limits.TRIGGERS_KEPT:
                self._kept = {key: self._kept[key] for key in ids if key in self._kept}
            for trigger_id, text in (await telemetry.timed("load_triggers", store.load_triggers(missing))).items():
                self._kept[trigger_id] = _read(text)
        return self._kept


def _read(text: str) -> Trigger | str:
    try:
        return trigger_from_spec(text)
    except Rejected as problem:
        return f"{problem.code}: {problem}"
