import json

import pytest

from luciole.errors import StoreUnavailable
from luciole.limits import MS_US, SECOND_US, TELEMETRY_WINDOW_US
from luciole.runtime.telemetry import Histogram, Telemetry
from luciole.testing.clock import FakeClock


def test_percentiles_are_at_most_one_cell_too_high() -> None:
    histogram = Histogram()
    for duration_us in range(1_000, 101_000, 1_000):
        histogram.add(duration_us)
    assert histogram.percentile_us(0.5) in range(50_000, 80_000)
    assert histogram.percentile_us(0.99) in range(99_000, 100_001)
    assert (histogram.percentile_us(1.0), histogram.max_us, histogram.count) == (100_000, 100_000, 100)


def test_durations_beyond_every_cell_and_nothing_at_all_have_percentiles() -> None:
    histogram = Histogram()
    assert histogram.percentile_us(0.99) == 0
    histogram.add(10_000 * SECOND_US, times=3)
    assert (histogram.percentile_us(0.5), histogram.count) == (10_000 * SECOND_US, 3)


async def test_a_snapshot_says_how_it_is_and_forgets_how_it_was() -> None:
    clock = FakeClock()
    telemetry = Telemetry(clock)
    telemetry.gauge("held", lambda: 7)
    telemetry.count("fired", 5)
    telemetry.note("fire_lag", 3 * MS_US)
    first = json.loads(telemetry.text())
    assert first["gauges"] == {"held": 7}
    assert first["durations"]["fire_lag"]["max_us"] == 3 * MS_US
    clock.jump(TELEMETRY_WINDOW_US)
    assert "fire_lag" in telemetry.snapshot()["durations"]
    clock.jump(TELEMETRY_WINDOW_US)
    later = telemetry.snapshot()
    assert later["durations"] == {}
    assert later["counters"] == {"fired": 5}


async def test_a_store_verb_is_timed_also_when_it_fails() -> None:
    clock = FakeClock()
    telemetry = Telemetry(clock)

    async def verb(answer: int | None) -> int:
        clock.jump(2 * MS_US)
        if answer is None:
            raise StoreUnavailable("down")
        return answer

    assert await telemetry.timed("settle", verb(3)) == 3
    with pytest.raises(StoreUnavailable):
        await telemetry.timed("settle", verb(None))
    snapshot = telemetry.snapshot()
    assert snapshot["durations"]["store.settle"]["count"] == 2
    assert snapshot["counters"]["store_unavailable"] == 1
