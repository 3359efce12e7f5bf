"""What the parts of a burst tell becomes figures and checks."""

from luciole.bench.attribution.watching import Told
from luciole.bench.burst.figures import burst_checks, burst_figures
from luciole.bench.burst.spec import Closed, Drained
from luciole.bench.percentiles import Distribution
from luciole.bench.work import Log, Work

AT_US = 1_000_000
NOTHING = Distribution().percentiles()
TOLD = Told(
    begun_us=0,
    ended_us=1,
    stages_us={},
    in_flight={},
    main_thread_us=0,
    gc_pauses=0,
    gc_pauses_us=0,
    stalls_us=0,
    stall_max_us=0,
)


def drained(*, created: int, last_commit_us: int, lost: int = 0, entries: int | None = None) -> Drained:
    return Drained(
        created=created,
        skipped=0,
        lost=lost,
        refused=0,
        entries=created if entries is None else entries,
        chunks=2,
        gate_us=AT_US,
        first_commit_us=AT_US,
        last_commit_us=last_commit_us,
        cpu_us=300,
        fire_lag=NOTHING,
        decide_lag=NOTHING,
        commit_time=NOTHING,
        told=TOLD,
        verbs={"commit_plan": 2, "due_cursors": 1},
    )


def closed(*, settled: int, confirmed: int = 0, duration_us: int = 1_000_000) -> Closed:
    return Closed(
        settled=settled,
        confirmed=confirmed,
        refused=0,
        duration_us=duration_us,
        cpu_us=200,
        written_bytes=0,
        batches=1,
        settle_lag=NOTHING,
        told=TOLD,
    )


def failed(**parts: object) -> set[str]:
    sound: dict[str, object] = {
        "drained": [drained(created=60, last_commit_us=2), drained(created=40, last_commit_us=2)],
        "closed": [closed(settled=60), closed(settled=40)],
        "stale": {"attempted": 64, "accepted": 0},
        "topology": "partitioned",
        "troubles": {},
    }
    return {check.name for check in burst_checks(jobs=100, **{**sound, **parts}) if not check.passed}  # type: ignore[arg-type] # the parts have their types


def test_the_drain_ends_with_the_last_commit_of_the_slowest_scheduler() -> None:
    figures = burst_figures(
        jobs=100,
        at_us=AT_US,
        drained=[
            drained(created=60, last_commit_us=AT_US + 500_000),
            drained(created=40, last_commit_us=AT_US + 250_000),
        ],
        closed=[closed(settled=60, duration_us=500_000), closed(settled=40, duration_us=100_000)],
        server_us=(1_000, 500),
        written=0,
        work=(Work(commits=10, statements=20), Work(commits=12, statements=25)),
        log=Log(bytes=120_000, image_bytes=8_192),
        stale=64,
    )
    assert figures["drain_us"] == 500_000
    assert figures["drain_rate"] == 200
    assert figures["end_to_end_rate"] == 100
    assert figures["commits_per_job"] == 0.02
    assert figures["statements_per_job"] == 0.05
    assert figures["wal_bytes_per_job"] == 1_200
    assert figures["verbs_per_job"] == 0.08
    assert figures["client_cpu_us_per_job"] == 10
    assert figures["server_cpu_us_per_job"] == 15


def test_what_the_server_does_not_say_is_left_out() -> None:
    figures = burst_figures(
        jobs=1,
        at_us=AT_US,
        drained=[drained(created=1, last_commit_us=AT_US + 1)],
        closed=[closed(settled=1)],
        server_us=None,
        written=7,
        work=(Work(), Work()),
        log=None,
        stale=0,
    )
    assert {"commits_per_job", "statements_per_job", "wal_bytes_per_job", "server_cpu_us_per_job"}.isdisjoint(figures)
    assert figures["written_bytes_per_job"] == 7


def test_a_sound_burst_passes() -> None:
    assert failed() == set()


def test_a_dropped_job_is_seen_in_the_reports() -> None:
    parts = {"drained": [drained(created=99, last_commit_us=2)], "closed": [closed(settled=99)]}
    assert failed(**parts) == {"reported_created", "reported_entries_handed_out", "reported_settled"}


def test_an_entry_that_went_to_two_schedulers_is_seen() -> None:
    parts = {
        "drained": [drained(created=100, last_commit_us=2, entries=101)],
        "closed": [closed(settled=100, confirmed=1)],
    }
    assert failed(**parts) == {"reported_entries_handed_out", "reported_settled_twice"}


def test_an_accepted_stale_fence_is_seen_and_so_is_one_that_was_never_tried() -> None:
    # I3: a write under an outdated fence is refused; a bench that never sends one could not know.
    assert failed(stale={"attempted": 64, "accepted": 1}) == {"reported_stale_accepted"}
    assert failed(stale={"attempted": 0, "accepted": 0}) == {"reported_stale_attempts"}


def test_contention_without_a_lost_race_was_none() -> None:
    assert failed(topology="contention") == {"reported_lost_races"}
    assert failed(topology="contention", drained=[drained(created=100, last_commit_us=2, lost=1)]) == set()


def test_former_holders_must_have_tried_and_must_have_been_refused() -> None:
    # I3: whoever lost a shard writes nothing under it, even when it never looks at its own deadline.
    sound = {"zombie_plans": 9, "zombie_deliveries": 9, "zombie_accepted": 0}
    assert failed(topology="zombie", troubles=sound) == set()
    assert failed(topology="zombie", troubles={**sound, "zombie_plans": 0}) == {"reported_zombie_plans"}
    assert failed(topology="zombie", troubles={**sound, "zombie_deliveries": 0}) == {"reported_zombie_deliveries"}
    assert failed(topology="zombie", troubles={**sound, "zombie_accepted": 1}) == {"reported_zombie_accepted"}


def test_a_kill_after_the_end_or_none_at_all_is_seen() -> None:
    survivors = [drained(created=90, last_commit_us=2)]
    sound = {"take_overs": 3, "kills": 1}
    assert failed(topology="flap", troubles=sound, drained=survivors) == set()
    assert failed(topology="flap", troubles=sound) == {"reported_created_by_the_killed"}
    assert failed(topology="flap", troubles={"take_overs": 0, "kills": 0}, drained=survivors) == {
        "reported_take_overs",
        "reported_kills",
    }
