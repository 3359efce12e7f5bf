"""The store's clock in an executor, by what nodes say."""

from luciole.executor.attempt import StoreTime
from luciole.limits import SECOND_US
from luciole.testing.clock import START_US, FakeClock

HOUR_US = 3_600 * SECOND_US


def test_an_answer_that_was_held_up_on_its_way_does_not_set_the_clock_back() -> None:
    clock = FakeClock()
    time = StoreTime(clock)
    time.observe(START_US + HOUR_US, asked_us=clock.monotonic_us())  # This host is an hour late.
    asked_us = clock.monotonic_us()
    clock.jump(9 * SECOND_US)
    time.observe(START_US + HOUR_US + 1 * SECOND_US, asked_us=asked_us)  # Said eight seconds ago.
    assert time.now_us() == START_US + HOUR_US + 9 * SECOND_US


def test_a_store_that_was_set_back_or_forward_is_followed() -> None:
    clock = FakeClock()
    time = StoreTime(clock)
    for step_us in (-HOUR_US, 2 * HOUR_US):
        asked_us = clock.monotonic_us()
        clock.jump(1 * SECOND_US)
        time.observe(clock.now_us() + step_us, asked_us=asked_us)
        assert abs(time.now_us() - clock.now_us() - step_us) <= 1 * SECOND_US
