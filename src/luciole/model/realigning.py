"""New rules of zones: where a cursor belongs that older ones placed."""

import re

from luciole.model.plan import Realigned
from luciole.model.schedule import Cursor
from luciole.model.trigger import Trigger, jitter_us
from luciole.model.wall_trigger import WallTrigger


def realigned(cursor: Cursor, trigger: Trigger) -> Realigned | None:
    """Return where a cursor belongs by the rules of zones that this process has; None: where it is.

    The old rules are gone, so the wall time that was meant can't be asked for. Rules shift a fire time by hours at
    most, while the one before it already has its outcome: the nearest fire time by the new rules is the same one.
    """
    if not isinstance(trigger, WallTrigger):
        return None
    later_us = trigger.next_us(cursor.fire_us - 1)
    if later_us == cursor.fire_us:
        return None
    earlier_us = trigger.previous_us(cursor.fire_us)
    near = [at_us for at_us in (later_us, earlier_us) if at_us is not None]
    if not near:
        return None
    fire_us = min(near, key=lambda at_us: abs(at_us - cursor.fire_us))
    return Realigned(cursor, fire_us, fire_us + jitter_us(trigger.jitter_us, cursor.schedule_id, fire_us))


def is_newer(rules: str, than: str) -> bool:
    """Whether one version of the rules is newer than another: 2026.10 is newer than 2026.2."""
    return _numbers(rules) > _numbers(than)


def _numbers(rules: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", rules)))
