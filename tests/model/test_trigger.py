"""Triggers as everybody uses them: datetimes at the edge, text in the store, reasons, jitter, bounds, a memo."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luciole.errors import InvalidTrigger, InvalidValue, Rejected
from luciole.model.trigger import Trigger, calendar_every, cron, every, once, trigger_from_spec
from tests.model.trigger_oracle import ZONES
from tests.model.work import lines_run

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
NOON_US = round(NOON.timestamp()) * SECOND_US

ALL_KINDS: list[Trigger] = [
    cron("30 2 * * *", tz="Europe/Berlin"),
    cron("*/5 0-11,12-23 L * mon#2", tz="America/New_York", jitter="10s", start=NOON, end=NOON + timedelta(days=900)),
    cron("10 */15 * * * *", seconds="first", gap="shift", fold="second"),
    every("90s", anchor=NOON, jitter="1s"),
    calendar_every(months=1, at="09:00", tz="Asia/Tokyo", anchor="2026-01-31"),
    once(NOON),
]


def test_a_naive_datetime_is_refused_by_field() -> None:
    naive = datetime(2026, 12, 1)  # noqa: DTZ001 - on purpose
    for trigger in ALL_KINDS:
        with pytest.raises(InvalidValue, match=r"\Aafter: .* no time zone; pass an aware datetime"):
            trigger.next(naive)
        with pytest.raises(InvalidValue, match=r"\Abefore: .* no time zone; pass an aware datetime"):
            trigger.previous(naive)
        with pytest.raises(InvalidValue, match=r"\Aafter: a str is no datetime"):
            trigger.explain("2026-12-01")  # type: ignore[arg-type]


def test_datetimes_of_any_zone_ask_the_same_and_are_answered_in_utc() -> None:
    trigger = cron("30 1 * * *", tz="America/New_York", fold="both")
    first = datetime(2026, 11, 1, 1, 30, tzinfo=ZoneInfo("America/New_York"))
    assert trigger.next(first - timedelta(hours=1)) == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    # The same wall time again, told apart by its fold alone.
    assert trigger.next(first) == datetime(2026, 11, 1, 6, 30, tzinfo=UTC)
    assert trigger.next(first.replace(fold=1)) == datetime(2026, 11, 2, 6, 30, tzinfo=UTC)
    assert trigger.previous(first.replace(fold=1)) == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)


@pytest.mark.parametrize("trigger", ALL_KINDS, ids=str)
def test_fires_lie_strictly_after_and_strictly_before(trigger: Trigger) -> None:
    fire = trigger.next(NOON - timedelta(days=1))
    assert fire is not None
    assert trigger.next(fire - timedelta(microseconds=1)) == fire
    assert trigger.previous(fire + timedelta(microseconds=1)) == fire
    following, before = trigger.next(fire), trigger.previous(fire)
    assert following is None or following > fire
    assert before is None or before < fire


@pytest.mark.parametrize("trigger", ALL_KINDS, ids=str)
def test_a_trigger_is_its_text(trigger: Trigger) -> None:
    text = trigger.to_spec()
    again = trigger_from_spec(text)
    assert again == trigger
    assert hash(again) == hash(trigger)
    assert again.to_spec() == text
    assert trigger_from_spec(text) is again
    assert trigger != every("91s")
    assert eval(repr(trigger), {"trigger_from_spec": trigger_from_spec}) == trigger
    assert json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) == text


def test_stored_texts_stay_as_they_are() -> None:
    """These texts stand in databases: changing one is changing everybody's schedules."""
    assert [trigger.to_spec() for trigger in ALL_KINDS] == [
        '{"expression":"30 2 * * *","fold":"first","gap":"after","kind":"cron","tz":"Europe/Berlin"}',
        (
            '{"end_us":1873886400000000,"expression":"*/5 0-11,12-23 L * MON#2","fold":"both","gap":"skip",'
            '"jitter_us":10000000,"kind":"cron","start_us":1796126400000000,"tz":"America/New_York"}'
        ),
        '{"expression":"10 */15 * * * *","fold":"second","gap":"shift","kind":"cron","seconds":"first","tz":"UTC"}',
        '{"anchor_us":1796126400000000,"interval_us":90000000,"jitter_us":1000000,"kind":"every"}',
        (
            '{"anchor":"2026-01-31","at":"09:00:00","days":0,"fold":"first","gap":"after","kind":"calendar",'
            '"months":1,"tz":"Asia/Tokyo"}'
        ),
        '{"at_us":1796126400000000,"kind":"once"}',
    ]


def test_equal_rules_have_one_text() -> None:
    assert cron("30 2 * * MON ") == cron("30 2 ? * mon", gap="after", fold="first", tz="UTC")
    assert cron("0 * * * *") == cron("@hourly", gap="skip", fold="both")
    assert cron("0 * * * *") != cron("0 * * * *", gap="after")


GOOD = '{"expression":"0 * * * *","fold":"both","gap":"skip","kind":"cron","tz":"UTC"}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "trigger: '' is no JSON object"),
        ("null", "trigger: 'null' is no JSON object"),
        ("[" * 2_000, "is no JSON object"),
        ('{"a":' * 400, "is no JSON object"),
        ("{", "is no JSON object"),
        ("\ud800", "is no JSON object"),
        ("{}" + " " * 5_000, "trigger: a str of 5002 characters is no trigger text"),
        ("{}", "kind: the stored trigger lacks it"),
        ('{"kind":5}', "kind: a stored trigger has a text here, not a int"),
        ('{"kind":"yearly"}', "kind: 'yearly' is no kind of trigger; write once, every, cron or calendar"),
        ('{"kind":"once"}', "at_us: the stored trigger lacks it"),
        ('{"kind":"once","at_us":true}', "at_us: a stored trigger has a whole number"),
        ('{"kind":"once","at_us":1.5}', "at_us: a stored trigger has a whole number"),
        ('{"kind":"once","at_us":NaN}', "at_us: a stored trigger has a whole number"),
        ('{"kind":"once","at_us":1' + "0" * 1_500 + "}", "at_us: a stored trigger has a whole number"),
        ('{"kind":"once","at_us":5,"tz":"UTC"}', "trigger: 'tz' is no field of this kind"),
        ('{"kind":"every","interval_us":0,"anchor_us":0}', "interval: it lies between"),
        ('{"kind":"every","interval_us":5000,"anchor_us":0,"jitter_us":5000}', "jitter: 0.005 s is not smaller"),
        (GOOD.replace("0 * * * *", "61 * * * *"), "minute: '61'"),
        (GOOD.replace("UTC", "Europe/Nowhere"), "tz: 'Europe/Nowhere'"),
        (GOOD.replace("skip", "maybe"), "gap: 'maybe' is no policy"),
        (GOOD.replace("both", "\\u0000"), "fold: '\\x00' is no policy"),
        (GOOD.replace('"tz"', '"TZ"'), "tz: the stored trigger lacks it"),
        (GOOD.replace("{", '{"start_us":9,"end_us":8,'), "end: it lies before start"),
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_text_that_is_no_trigger_is_refused_by_field(text: str, message: str) -> None:
    with pytest.raises(InvalidTrigger) as caught:
        trigger_from_spec(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("value", [None, 5, b"{}", [], {}, object()])
def test_what_is_no_text_is_refused_by_its_kind(value: object) -> None:
    with pytest.raises(InvalidTrigger, match=f"trigger: a {type(value).__name__} is no trigger text"):
        trigger_from_spec(value)  # type: ignore[arg-type]


JSON_LIKE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.sampled_from(ZONES)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=5,
)
KEYS = st.sampled_from(sorted({key for trigger in ALL_KINDS for key in json.loads(trigger.to_spec())}))


@given(st.sampled_from(ALL_KINDS), st.dictionaries(KEYS, JSON_LIKE, max_size=3), st.sets(KEYS, max_size=2))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_damaged_text_is_read_or_refused_but_never_breaks(
    trigger: Trigger, changed: dict[str, object], dropped: set[str]
) -> None:
    fields = json.loads(trigger.to_spec()) | changed
    text = json.dumps({key: value for key, value in fields.items() if key not in dropped})
    try:
        again = trigger_from_spec(text)
    except InvalidTrigger:
        return
    assert trigger_from_spec(again.to_spec()) == again


def test_start_and_end_bound_every_answer() -> None:
    start = datetime(2026, 12, 1, 9, tzinfo=UTC)
    trigger = cron("0 9 * * *", start=start, end=start + timedelta(days=2))
    assert trigger.next(start - timedelta(days=99)) == start
    assert trigger.next(start + timedelta(days=2)) is None
    assert trigger.previous(start) is None
    assert trigger.previous(start + timedelta(days=99)) == start + timedelta(days=2)
    assert trigger.count(0, 4 * 10**15) == 3
    inside = cron("0 9 * * *", start=start + timedelta(microseconds=1), end=start + timedelta(days=2, seconds=-1))
    assert inside.count(0, 4 * 10**15) == 1


def test_bounds_without_a_fire_are_refused() -> None:
    with pytest.raises(InvalidTrigger, match="end: no fire time lies between start and end"):
        cron("0 0 1 1 *", start=NOON, end=NOON + timedelta(days=30))
    with pytest.raises(InvalidTrigger, match=r"start: .* no time zone"):
        cron("0 0 1 1 *", start=datetime(2026, 1, 1))  # noqa: DTZ001 - naive on purpose


def test_a_rule_whose_every_wall_time_is_skipped_is_refused() -> None:
    """The last Sunday of March at 02:30 does not exist in Berlin, in any year to come."""
    assert cron("30 2 25-31 3 */7", tz="Europe/Berlin").next(NOON) == datetime(2027, 3, 28, 1, tzinfo=UTC)
    with pytest.raises(InvalidTrigger, match="gap: every wall time of this rule falls into a gap of Europe/Berlin"):
        cron("30 2 25-31 3 */7", tz="Europe/Berlin", gap="skip")


@pytest.mark.parametrize("field", ["gap", "fold"])
@pytest.mark.parametrize("policy", ["", "First", "none", None, 1, [], b"skip"])
def test_an_unknown_policy_is_refused_by_field(field: str, policy: object) -> None:
    with pytest.raises(InvalidTrigger, match=rf"\A{field}: .* is no policy; write one of auto"):
        cron("0 0 * * *", **{field: policy})  # type: ignore[arg-type]


def test_six_hours_of_seconds_are_counted_without_being_listed() -> None:
    trigger = cron("* * * * * *", seconds="first", tz="Europe/Berlin")
    assert trigger.count(NOON_US - 1, NOON_US + 6 * HOUR_US) == 21_601
    assert lines_run(lambda: trigger.count(NOON_US, NOON_US + 6 * HOUR_US)) < 100


def test_a_century_of_seconds_is_counted_by_its_changes() -> None:
    trigger = cron("* * * * * *", seconds="first", tz="Europe/Berlin")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    end = start.replace(year=2126)
    micros = [round(moment.timestamp()) * SECOND_US for moment in (start, end)]
    assert trigger.count(*micros) == (end - start).total_seconds()
    assert lines_run(lambda: trigger.count(*micros)) < 100 * 2 * 60


@given(st.integers(-(2**70), 2**70), st.sampled_from(ALL_KINDS))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_absurd_instants_get_an_answer(instant_us: int, trigger: Trigger) -> None:
    following, before = trigger.next_us(instant_us), trigger.previous_us(instant_us)
    assert following is None or following > instant_us
    assert before is None or before < instant_us
    assert 0 <= trigger.count(instant_us, instant_us + HOUR_US) < 4_000


def test_every_refusal_is_a_rejection() -> None:
    assert issubclass(InvalidTrigger, Rejected)
    assert InvalidTrigger.code == "invalid_trigger"
