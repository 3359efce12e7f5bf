"""Cron text: what is understood, what is refused and with which words, and that any input costs little."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from luciole import limits
from luciole.errors import InvalidTrigger
from luciole.model.cron import cron_walls
from luciole.model.cron_parse import Seconds
from luciole.model.trigger import cron, trigger_from_spec
from tests.model.work import lines_run


def times(expression: str, seconds: str | None = None) -> tuple[int, int, int, int]:
    fields = cron_walls(expression, seconds).fields
    return fields.seconds, fields.minutes, fields.hours, fields.months


def members(values: int) -> list[int]:
    return [k for k in range(values.bit_length()) if values >> k & 1]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("*", list(range(24))),
        ("0", [0]),
        ("07", [7]),
        ("1,5,3,5", [1, 3, 5]),
        ("9-12", [9, 10, 11, 12]),
        ("5-5", [5]),
        ("22-2", [0, 1, 2, 22, 23]),
        ("5-4", list(range(24))),
        ("*/6", [0, 6, 12, 18]),
        ("*/24", [0]),
        ("1-9/3", [1, 4, 7]),
        ("20-4/2", [0, 2, 4, 20, 22]),
        ("8-10,*/12", [0, 8, 9, 10, 12]),
    ],
)
def test_a_field_names_its_values(field: str, values: list[int]) -> None:
    assert members(times(f"0 {field} * * *")[2]) == values


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("0", [0]),
        ("7", [0]),
        ("sun", [0]),
        ("1-5", [1, 2, 3, 4, 5]),
        ("mon-FRI", [1, 2, 3, 4, 5]),
        ("1-7", list(range(7))),
        ("0-7", list(range(7))),
        ("5-7", [0, 5, 6]),
        ("fri-sun", [0, 5, 6]),
        ("fri-mon", [0, 1, 5, 6]),
        ("7-2", [0, 1, 2]),
        ("1-7/2", [0, 1, 3, 5]),
        ("*/2", [0, 2, 4, 6]),
        ("sat,tue", [2, 6]),
    ],
)
def test_a_week_begins_and_ends_with_sunday(field: str, days: list[int]) -> None:
    walls = cron_walls(f"0 0 * * {field}")
    assert members(walls.fields.week_days.days) == days


def test_months_have_names() -> None:
    assert members(times("0 0 1 jan,MAR,11-2 *")[3]) == [1, 2, 3, 11, 12]


def test_seconds_stand_where_they_are_said_to() -> None:
    assert times("30 5 6 * * *", seconds="first")[:3] == (1 << 30, 1 << 5, 1 << 6)
    assert times("5 6 * * * 30", seconds="last")[:3] == (1 << 30, 1 << 5, 1 << 6)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@Yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("  0   0 *\t* * ", "0 0 * * *"),
        ("0 0 ? * mon", "0 0 * * MON"),
        ("0 0 15 * ?", "0 0 15 * *"),
    ],
)
def test_one_rule_has_one_text(text: str, same: str) -> None:
    assert cron(text) == cron(same)
    assert f'"{same}"' in cron(text).to_spec()


REFUSED = [
    ("", "expression: cron needs 5 fields"),
    ("* * * *", "expression: cron needs 5 fields"),
    ("* * * * * *", "seconds: six fields could mean two things"),
    ("0 0 0 1 1 ? 2027", "there is no year field, write start= and end="),
    ("@reboot", "expression: '@reboot' is no alias"),
    ("@every 5m", "expression: '@every 5m' is no alias"),
    ("0/5 * * * *", "minute: '0/5' .* write 0-59/5"),
    ("* 8/2 * * *", "hour: '8/2' .* write 8-23/2"),
    ("* * 1/5 * *", "day of month: '1/5' .* write 1-31/5"),
    ("* * * jan/3 *", "month: 'JAN/3' .* write 1-12/3"),
    ("* * * * mon/2", "day of week: 'MON/2' .* write 1-6/2"),
    ("60 * * * *", "minute: '60' .* from 0 to 59"),
    ("* 24 * * *", "hour: '24' .* from 0 to 23"),
    ("* * 0 * *", "day of month: '0' .* from 1 to 31"),
    ("* * 32 * *", "day of month: '32'"),
    ("* * * 13 *", "month: '13' .* from 1 to 12 or JAN to DEC"),
    ("* * * * 8", "day of week: '8' .* from 0 to 6 or SUN to SAT"),
    ("* * * * monday", "day of week: 'MONDAY'"),
    ("mon * * * *", "minute: 'MON'"),
    ("-1 * * * *", "minute: '-1'"),
    ("1- * * * *", "minute: '1-'"),
    ("1-2-3 * * * *", "minute: '1-2-3'"),
    ("1,,2 * * * *", "minute: '1,,2' .* extra comma"),
    (", * * * *", "minute: ',' .* extra comma"),
    ("*/0 * * * *", "minute: '\\*/0' .* from 1 to 60"),
    ("*/90 * * * *", "minute: '\\*/90' .* from 1 to 60"),
    ("*/ * * * *", "minute: '\\*/'"),
    ("** * * * *", "minute: '\\*\\*'"),
    ("1.5 * * * *", "minute: '1.5'"),
    ("0x10 * * * *", "minute: '0X10'"),
    ("+5 * * * *", "minute: '\\+5'"),
    ("L * * * *", "minute: 'L'"),
    ("? * * * *", "minute: '\\?'"),
    ("0 0 ? * ?", "day of month: `\\?` in both"),
    ("0 0 1,? * *", "day of month: '\\?'"),
    ("0 0 L-31 * *", "day of month: 'L-31' .* L-1 to L-30"),
    ("0 0 W * *", "day of month: 'W'"),
    ("0 0 32W * *", "day of month: '32W'"),
    ("0 0 1-5W * *", "day of month: '1-5W'"),
    ("0 0 * * L", "day of week: 'L' .* write SAT, or 5L"),
    ("0 0 * * 8L", "day of week: '8L'"),
    ("0 0 * * mon#0", "day of week: 'MON#0' .* #1 to #5"),
    ("0 0 * * mon#6", "day of week: 'MON#6' .* #1 to #5"),
    ("0 0 * * 1-5#2", "day of week: '1-5#2'"),
    ("0 0 30 2 *", "day of month: '30' never comes in month 2"),
    ("0 0 31 2,4,6,9,11 *", "day of month: '31' never comes in month 2, 4, 6, 9, 11"),
    ("0 0 30-31 feb *", "day of month: '30-31' never comes in month 2"),
    ("0 0 L-30 4 *", "day of month: 'L-30' never comes in month 4"),
    ("0 0 31W 4 *", "day of month: '31W' never comes in month 4"),
    ("0 0 */31 * mon#2", "day of month: '\\*/31' never falls on day of week 'MON#2' in any month"),
    ("1--100000000 * * * *", "minute: '1--100000000'"),
    ("0-59\n * * * *", "holds a character that cron does not know"),
    ("\0 * * * *", "holds a character that cron does not know"),
    ("\ud800 * * * *", "holds a character that cron does not know"),
    ("٣ * * * *", "holds a character that cron does not know"),
    ("9" * 100 + " * * * *", "minute: '9{40}'\\.\\.\\."),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=lambda text: ascii(text)[:40])
def test_wrong_text_is_refused_by_field(text: str, message: str) -> None:
    with pytest.raises(InvalidTrigger, match=f"\\A.*{message}"):
        cron(text)


@pytest.mark.parametrize("value", [None, 5, b"* * * * *", ["* * * * *"], {"minute": 5}, object()])
def test_what_is_no_text_is_refused_by_its_kind(value: object) -> None:
    with pytest.raises(InvalidTrigger, match=f"expression: .* not a {type(value).__name__}"):
        cron(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", ["", "First", "middle", 1, True, [], 0])
def test_a_position_of_seconds_is_first_or_last(seconds: object) -> None:
    with pytest.raises(InvalidTrigger, match="seconds: write None, 'first' or 'last'"):
        cron("0 * * * * *", seconds=seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["0 * * * *", "@daily", "0 0 * * * * *"])
def test_seconds_without_six_fields_are_refused(text: str) -> None:
    with pytest.raises(InvalidTrigger, match="seconds: seconds='first' announces six fields"):
        cron(text, seconds="first")


@pytest.mark.parametrize(
    "text",
    [
        "1--100000000 * * * *",
        "," * 1_000_000,
        "0-59/1," * 150_000 + " * * * *",
        "* " * 500_000,
        "9" * 300 + " * * * *",
        "\0" * 1_000_000,
        "\ud800 * * * *",
        "@" * 1_000_000,
        "1" * 1_000_000 + "-" * 1_000_000,
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_text_that_broke_others_is_refused_with_little_work(text: str) -> None:
    assert lines_run(lambda: refusal(text)) < 200
    assert 0 < len(refusal(text)) < 300


def test_a_text_has_a_longest_length() -> None:
    longest = "0 0 1 1 " + ",".join(["0"] * 124)
    assert len(longest) == limits.CRON_LENGTH_MAX - 1
    assert cron(longest + " ") == cron("0 0 1 1 " + ",".join(["0"] * 124))
    with pytest.raises(
        InvalidTrigger, match="expression: 257 characters are too many for cron text; write at most 256"
    ):
        cron(longest + "  ")


def refusal(text: str, seconds: Seconds | None = None) -> str:
    """Why the text is refused, or nothing."""
    try:
        cron(text, seconds=seconds)
    except InvalidTrigger as error:
        return str(error)
    return ""


CRON_LIKE = st.text("0123456789*/-,LW#?@ \tmonSUNjanfeb", max_size=limits.CRON_LENGTH_MAX)
FIELD_LIKE = st.text("0123456789*/-,LW#?", min_size=1, max_size=8)
ANY_TEXT = st.one_of(
    st.text(max_size=300),
    CRON_LIKE,
    st.lists(st.one_of(FIELD_LIKE, st.just("*")), min_size=5, max_size=6).map(" ".join),
)


@given(ANY_TEXT, st.sampled_from([None, "first", "last"]))
@example("59-0/59,0-59/1," * 17 + "0 * * * *", None)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_any_text_is_a_trigger_or_refused(text: str, seconds: Seconds | None) -> None:
    assert lines_run(lambda: refusal(text, seconds)) < 5_000
    message = refusal(text, seconds)
    assert message.isascii()
    if message:
        return
    trigger = cron(text, seconds=seconds)
    assert trigger_from_spec(trigger.to_spec()) == trigger
    fire_us = trigger.next_us(0)
    assert fire_us is not None
    assert fire_us > 0
    assert trigger.previous_us(fire_us + 1) == fire_us
