import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luciole import limits
from luciole.errors import ClockSkew
from luciole.limits import HOUR_US, MINUTE_US, MS_US, SECOND_US
from luciole.runtime.store_clock import StoreClock
from luciole.testing.clock import FakeClock

AHEAD_US = 12_345_678  #: the store's clock before the host's


def sample(clock: FakeClock, store_clock: StoreClock, *, there_us: int, back_us: int, ahead_us: int = AHEAD_US) -> None:
    """Ask the store for its time over a network."""
    sent_us = clock.monotonic_us()
    clock.jump(there_us)
    store_us = clock.now_us() + ahead_us
    clock.jump(back_us)
    store_clock.observe(store_us, sent_us=sent_us, received_us=clock.monotonic_us())


@given(st.lists(st.tuples(st.integers(0, 900 * MS_US), st.integers(0, 900 * MS_US)), min_size=1, max_size=20))
def test_it_is_never_ahead_of_the_store_and_behind_by_one_way_at_most(ways: list[tuple[int, int]]) -> None:
    # I11: what is due by it is due by the store.
    clock = FakeClock()
    store_clock = StoreClock(clock=clock)
    best_us = None
    for number, (there_us, back_us) in enumerate(ways):
        sample(clock, store_clock, there_us=there_us, back_us=back_us)
        recent = ways[max(0, number + 1 - limits.CLOCK_SAMPLES) : number + 1]
        best_us = min(back for _, back in recent)
        behind_us = clock.now_us() + AHEAD_US - store_clock.now_us()
        assert behind_us == best_us


def test_the_hosts_wall_clock_plays_no_part() -> None:
    clock = FakeClock()
    store_clock = StoreClock(clock=clock)
    sample(clock, store_clock, there_us=0, back_us=0)
    before_us = store_clock.now_us()
    clock.shift_wall(-365 * 24 * HOUR_US)
    assert store_clock.now_us() == before_us


@pytest.mark.parametrize("jump_us", [8 * HOUR_US, -8 * HOUR_US])
def test_a_jump_of_the_store_is_followed_at_once_and_reported(jump_us: int, caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    store_clock = StoreClock(clock=clock)
    for _ in range(3):
        sample(clock, store_clock, there_us=MS_US, back_us=MS_US)
    with caplog.at_level(logging.WARNING):
        sample(clock, store_clock, there_us=MS_US, back_us=MS_US, ahead_us=AHEAD_US + jump_us)
    assert "clock jump" in caplog.text
    assert store_clock.jumps == 1
    assert clock.now_us() + AHEAD_US + jump_us - store_clock.now_us() == MS_US


def test_a_small_step_back_is_never_overlooked() -> None:
    # I11: an older, higher bound is no longer true.
    clock = FakeClock()
    store_clock = StoreClock(clock=clock)
    sample(clock, store_clock, there_us=0, back_us=0)
    sample(clock, store_clock, there_us=0, back_us=0, ahead_us=AHEAD_US - 300 * MS_US)
    assert store_clock.now_us() <= clock.now_us() + AHEAD_US - 300 * MS_US


@pytest.mark.parametrize(("ahead_us", "refused"), [(4 * MINUTE_US, False), (6 * MINUTE_US, True), (-HOUR_US, True)])
def test_an_absurd_skew_refuses_the_start(*, ahead_us: int, refused: bool) -> None:
    clock = FakeClock()
    store_clock = StoreClock(clock=clock)
    sample(clock, store_clock, there_us=0, back_us=0, ahead_us=ahead_us)
    if refused:
        with pytest.raises(ClockSkew, match="this host's clock is"):
            store_clock.refuse_skew()
    else:
        store_clock.refuse_skew()
    assert store_clock.wall_offset_us() == ahead_us
    assert store_clock.until_us(store_clock.now_us() + SECOND_US) == SECOND_US
