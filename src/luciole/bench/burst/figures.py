"""From what the parts of a burst tell to figures and to checks; pure."""

from collections.abc import Mapping, Sequence

from luciole.bench.burst.spec import Closed, Drained, Topology
from luciole.bench.check import judge
from luciole.bench.result import Check
from luciole.bench.work import Log, Work
from luciole.limits import SECOND_US
from luciole.model.instant import Instant


def burst_figures(  # noqa: PLR0913 - one value for each source of figures
    *,
    jobs: int,
    at_us: Instant,
    drained: Sequence[Drained],
    closed: Sequence[Closed],
    server_us: tuple[int, int] | None,
    written: int,
    work: tuple[Work, Work],
    log: Log | None,
    stale: int,
) -> dict[str, float]:
    """Return the figures of one repeat by the names of the profile's metrics, and a few that explain them.

    Args:
        jobs: N.
        at_us: T.
        drained: of each scheduler.
        closed: of each scheduler.
        server_us: CPU time of the server in the drain and in the settling; None when it is not ours.
        written: bytes that the schedulers handed to the filesystem.
        work: the server's counters before and after.
        log: what was written into the server's log.
        stale: moves sent under outdated fences.
    """
    drain_us = max(part.last_commit_us for part in drained) - at_us
    settle_us = max(part.duration_us for part in closed)
    verbs = sum(sum(part.verbs.values()) for part in drained) + sum(part.batches for part in closed)
    figures: dict[str, float] = {
        "drain_us": drain_us,
        "drain_rate": jobs * SECOND_US / drain_us,
        "settle_us": settle_us,
        "settle_rate": jobs * SECOND_US / settle_us,
        "end_to_end_rate": jobs * SECOND_US / (drain_us + settle_us),
        "chunks": sum(part.chunks for part in drained),
        "verbs_per_job": verbs / jobs,
        "client_drain_cpu_us_per_job": sum(part.cpu_us for part in drained) / jobs,
        "client_cpu_us_per_job": (sum(part.cpu_us for part in drained) + sum(part.cpu_us for part in closed)) / jobs,
        "lost_races": sum(part.lost for part in drained),
        "stale_attempts": stale,
    }
    if server_us:
        figures["server_drain_cpu_us_per_job"] = server_us[0] / jobs
        figures["server_cpu_us_per_job"] = sum(server_us) / jobs
    else:
        figures["written_bytes_per_job"] = written / jobs
    before, after = work
    if before.commits is not None and after.commits is not None:
        figures["commits_per_job"] = (after.commits - before.commits) / jobs
    if before.statements is not None and after.statements is not None:
        figures["statements_per_job"] = (after.statements - before.statements) / jobs
    if log:
        figures["wal_bytes_per_job"] = log.bytes / jobs
        figures["wal_image_bytes_per_job"] = log.image_bytes / jobs
    return figures


def burst_checks(
    *,
    jobs: int,
    drained: Sequence[Drained],
    closed: Sequence[Closed],
    stale: Mapping[str, int],
    topology: Topology,
    troubles: Mapping[str, int],
) -> list[Check]:
    """Judge what the processes report: what they were told, against what the store then holds.

    Every entry goes to the one process whose commit made it; one that went to two would be settled by one and
    confirmed to the other. A killed process reports nothing, so that with `flap` the store alone says what was made,
    and the reports say only that the kill came in the middle.
    """
    created = sum(part.created for part in drained)
    counts = {
        "reported_skipped": ("= 0", sum(part.skipped for part in drained)),
        "reported_settled": ("= :jobs", sum(part.settled for part in closed)),
        "reported_settled_twice": ("= 0", sum(part.confirmed for part in closed)),
        "reported_reports_refused": ("= 0", sum(part.refused for part in closed)),
        "reported_stale_attempts": ("> 0", stale["attempted"]),
        "reported_stale_accepted": ("= 0", stale["accepted"]),
    }
    if topology == "flap":
        counts["reported_take_overs"] = ("> 0", troubles["take_overs"])
        counts["reported_kills"] = ("= 1", troubles["kills"])
        counts["reported_created_by_the_killed"] = ("> 0", jobs - created)
    else:
        counts["reported_created"] = ("= :jobs", created)
        counts["reported_entries_handed_out"] = ("= :jobs", sum(part.entries for part in drained))
        counts["reported_refused_shards"] = ("= 0", sum(part.refused for part in drained))
    if topology == "contention":
        counts["reported_lost_races"] = ("> 0", sum(part.lost for part in drained))
    if topology == "zombie":
        counts["reported_zombie_plans"] = ("> 0", troubles["zombie_plans"])
        counts["reported_zombie_deliveries"] = ("> 0", troubles["zombie_deliveries"])
        counts["reported_zombie_accepted"] = ("= 0", troubles["zombie_accepted"])
    return [judge(name, "report", expect, found, {"jobs": jobs}) for name, (expect, found) in counts.items()]
