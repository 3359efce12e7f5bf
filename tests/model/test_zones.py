"""Zone tables, against `zoneinfo` on the same files."""

from __future__ import annotations

import io
import struct
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luciole.errors import InvalidTrigger
from luciole.model.zones import OFFSET_MAX_S, ZoneRules, parse_zone, zone_names, zone_rules, zones_version
from tests.model.trigger_oracle import EPOCH, SECOND, ZONES, offset_s, zone_info

DAY_S = 86_400


def second(year: int) -> int:
    return (datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // SECOND


def distinct_zones() -> list[str]:
    """One name for each table: two names in five are links."""
    tables = {name: zone_rules(name) for name in ZONES}
    return list({(r.changes_s, r.offsets_s, r.rule): name for name, r in tables.items()}.values())


@pytest.mark.parametrize("name", distinct_zones())
def test_every_change_of_every_zone_is_where_zoneinfo_has_it(name: str) -> None:
    zone, rules = zone_info(name), zone_rules(name)
    segments = rules.segments(second(1800), second(2060))
    for segment in segments[1:]:
        assert offset_s(zone, segment.start_s) == segment.offset_s
        assert offset_s(zone, segment.start_s - 1) != segment.offset_s
    assert len({segment.start_s for segment in segments}) == len(segments)
    # Between two changes nothing changes: looked at twice a year.
    for instant_s in range(second(1850), second(2060), 180 * DAY_S):
        (segment,) = rules.segments(instant_s, instant_s + 1)
        assert offset_s(zone, instant_s) == segment.offset_s


@given(st.sampled_from(ZONES), st.integers(second(1800), second(9990)))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_an_offset_is_zoneinfos_in_any_year(name: str, instant_s: int) -> None:
    rules = zone_rules(name)
    assert rules.offset_at(instant_s) == offset_s(zone_info(name), instant_s)
    assert abs(rules.offset_at(instant_s)) < OFFSET_MAX_S


@pytest.mark.slow
@pytest.mark.parametrize("name", distinct_zones())
def test_no_change_is_missed_in_two_centuries(name: str) -> None:
    zone, rules = zone_info(name), zone_rules(name)
    listed = {segment.start_s for segment in rules.segments(second(1880), second(2080))[1:]}
    # No two changes of any zone lie within four days: each shows in a step of its own.
    step_s = 4 * DAY_S
    grid = range(second(1880), second(2080), step_s)
    found = sum(offset_s(zone, low) != offset_s(zone, low + step_s) for low in grid)
    assert found == len(listed)


def made_zone(footer: str, *listed: tuple[int, int]) -> tuple[ZoneRules, ZoneInfo]:
    """A zone file of our own: one type for each listed change, after an offset of 0; and a footer."""
    offsets = [0, *(offset for _, offset in listed)]
    head = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, len(listed), len(offsets), 4)
    types = b"".join(struct.pack(">lbb", offset, 0, 0) for offset in offsets)
    kinds = bytes(range(1, len(listed) + 1))
    tail = kinds + types + b"ABC\0"
    old = head + struct.pack(f">{len(listed)}l", *(at for at, _ in listed)) + tail
    new = head + struct.pack(f">{len(listed)}q", *(at for at, _ in listed)) + tail
    data = old + new + b"\n" + footer.encode() + b"\n"
    return parse_zone("Made/Up", data), ZoneInfo.from_file(io.BytesIO(data), key="Made/Up")


@pytest.mark.parametrize(
    "footer",
    [
        "EET-2",
        "EST5EDT,M3.2.0,M11.1.0",
        "IST-1GMT0,M10.5.0,M3.5.0/1",
        "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
        "EET-2EEST,M3.4.4/50,M10.4.4/50",
        "AAA3BBB,J60,J300/26",
        "AAA+3BBB+2:15,M1.1.1,M12.5.6",
        "AAA-3:30:15BBB-5,M2.5.3/-12:30:30,J365",
    ],
)
def test_a_footer_means_what_zoneinfo_takes_it_for(footer: str) -> None:
    rules, zone = made_zone(footer, (second(1980), 7_200))
    for segment in rules.segments(second(1981), second(2030))[1:]:
        assert offset_s(zone, segment.start_s) == segment.offset_s
        assert offset_s(zone, segment.start_s - 1) != segment.offset_s
    for instant_s in range(second(1981), second(2030), 5 * DAY_S):
        assert rules.offset_at(instant_s) == offset_s(zone, instant_s)


@pytest.mark.parametrize(
    ("footer", "year", "changes"),
    [
        # zoneinfo of CPython 3.11 reads day 59 of a leap year and every zero-based day one day late.
        ("AAA0BBB,J59,J60", 2023, ["2023-02-28T02:00", "2023-03-01T01:00"]),
        ("AAA0BBB,J59,J60", 2024, ["2024-02-28T02:00", "2024-03-01T01:00"]),
        ("AAA0BBB,58,60", 2023, ["2023-02-28T02:00", "2023-03-02T01:00"]),
        ("AAA0BBB,58,60", 2024, ["2024-02-28T02:00", "2024-03-01T01:00"]),
    ],
)
def test_a_footer_may_count_days(footer: str, year: int, changes: list[str]) -> None:
    rules, _ = made_zone(footer)
    segments = rules.segments(second(year), second(year + 1))[1:]
    assert [f"{EPOCH + segment.start_s * SECOND:%Y-%m-%dT%H:%M}" for segment in segments] == changes


def test_a_zone_that_is_always_on_summer_time_never_changes() -> None:
    rules, _ = made_zone("XXX3EDT4,0/0,J365/23", (second(1980), -4 * 3_600))
    (segment,) = rules.segments(second(1990), second(2030))
    assert segment.offset_s == -4 * 3_600


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("America/NewYork", "America/New_York"),
        ("utc", "UTC"),
        ("Europe/Kyjiw", "Europe/Kyiv"),
    ],
)
def test_a_wrong_name_is_refused_with_the_right_one(name: str, close: str) -> None:
    with pytest.raises(InvalidTrigger) as caught:
        zone_rules(name)
    message = str(caught.value)
    assert message.startswith("tz: ")
    assert close in message


@pytest.mark.parametrize(
    "name", ["", "../zones", "/etc/localtime", "Europe", "\0", "\ud800", "x" * 10_000, "+02:00", "zones"]
)
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidTrigger, match=r"\Atz: .*write|\Atz: .*mean"):
        zone_rules(name)


def test_the_version_of_the_rules_is_a_release() -> None:
    assert zones_version()[:4].isdigit()
    assert len(zone_names()) > 500
