"""Jitter: a fixed offset from each fire time, different for each schedule, the same on every node."""

import struct
from zlib import crc32

_KEY = struct.Struct("<qq")


def jitter_us(trigger_jitter_us: int, schedule_id: int, fire_us: int) -> int:
    """Return the offset of one fire: due time = fire time + offset.

    It is taken from the nominal fire time, so offsets never add up from one fire to the next.

    Args:
        trigger_jitter_us: the trigger's jitter; 0 means none.
        schedule_id: whose fire it is (a 64-bit number), so that schedules of one trigger spread out.
        fire_us: the fire time.

    Returns:
        Microseconds in [0, trigger_jitter_us).
    """
    if not trigger_jitter_us:
        return 0
    return crc32(_KEY.pack(schedule_id, fire_us)) * trigger_jitter_us >> 32
