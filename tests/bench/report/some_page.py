"""A result that has everything a page can show."""

from luciole.bench.attribution.document import Flame, Series, Trace, Waits
from luciole.bench.result import Result
from tests.bench.burst_told import explained, told
from tests.bench.deciding.some_results import a_result, lags

#: What a hostile name could try.
HOSTILE = "<script>alert('x')</script>\"&"


def full(path: str = "batch", rate: float = 50_000) -> Result:
    """Return a result of a burst with all that it may hold."""
    result = a_result(
        "burst",
        {
            "drain_rate": [rate, rate * 1.1, rate * 0.9],
            "sql_ceiling_rate": [2 * rate] * 3,
            "drain_us": [200_000, 190_000, 210_000],
            "commits_per_job": [50 / rate] * 3,
        },
        distributions={"fire_lag": [lags(100_000, 10_000)] * 3, "settle_lag": [lags(9_000, 10_000)] * 3},
        requested={"path": path},
    )
    result.author = HOSTILE
    result.command = ["luciole", "bench", "run", "burst", "--dsn", "postgresql://me:hunter2@127.0.0.1/db"]
    result.limits_of_inference = ["One machine holds it all."]
    repeat = result.repeats[-1]
    waits = Waits(samples=20, every_ms=50, sessions={"CPU": 1.5, "IO:WalSync": 0.4}, log_busy=0.4)
    drain = explained(
        told({"statement": 600_000, "commit": 380_000}, {"connection": 3.9}),
        cpu_us=1_900_000,
        run_delay_us=2_000_000,
        waits=waits,
    )
    settle = explained(told({"statement": 900_000, "settle": 80_000}, {"connection": 0.98, "wait_connection": 2.9}))
    drain.begun_s, settle.begun_s, settle.window = 2.0, 3.0, "settle"
    repeat.attribution = [drain, settle]
    at_s = [2.0 + step / 10 for step in range(20)]
    repeat.series = [
        Series(name=name, unit=unit, at_s=at_s, values=[float(step * 10) for step in range(20)])
        for name, unit in (
            ("planned", "jobs"),
            ("backlog", "jobs"),
            ("fire lag", "ms"),
            ("CPU of scheduler 1", "cores"),
            ("write-ahead log", "bytes/s"),
        )
    ]
    repeat.traces = [
        Trace(
            name=f"1-{n}", chosen="slowest" if n < 5 else "random", stages=[("commit", 0, 10 + n), ("held", 10 + n, 99)]
        )
        for n in range(20)
    ]
    repeat.database = {"pg_stat_wal": {"wal_bytes": 1_000_000.0}}
    repeat.actual["steps"] = [
        {
            "why": "search",
            "schedules": rate * 60,
            "rate": float(rate),
            "met": rate < 400,
            "clauses": [] if rate < 400 else ["on time: 80% of all"],
            "start_lag_p99_us": rate * 1_000,
            "open_max": rate,
        }
        for rate in (100, 200, 400)
    ]
    result.flames = [
        Flame(
            name="scheduler 1", kind="cpu", samples=10, stacks={"main;tick;commit (asyncpg)": 7, f"main;{HOSTILE}": 3}
        )
    ]
    return result
