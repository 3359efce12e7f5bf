"""From what a window demanded of each resource to what limits it now, what next, and how much there is to win; pure."""

from collections.abc import Iterable, Sequence

from luciole.bench.attribution.document import Attribution, Resource, Sign, Stage
from luciole.limits import SECOND_US

#: Under this share of the lowest ceiling nothing is full.
FULL_SHARE = 0.7

#: Ceilings this near to the lowest are as low: then the one with the most kinds of signs is named.
ALIKE = 1.05

#: A resource that is in use for so much of a window is full by its own gauge.
USED_FULL = 0.8

#: Signs of different kinds that a named bottleneck needs.
SIGNS_MIN = 2

UNEXPLAINED = "unexplained"

#: Stages that the sentence about a serial path names.
_PATH_STAGES = 3


def resource(
    name: str,
    *,
    jobs: int,
    wall_us: int,
    servers: float,
    busy_us: int,
    passive: bool = False,
    signs: Iterable[Sign] = (),
) -> Resource:
    """Return what a window demanded of a resource.

    Args:
        name: as the sentence names it.
        jobs: done in the window.
        wall_us: length of the window.
        servers: how much of it works at the same time.
        busy_us: all that was used of it.
        passive: it can be held while it waits for another resource.
        signs: what else says that it is full; its own gauge is added here.
    """
    used = busy_us / (servers * wall_us) if servers and wall_us else 0.0
    demand_us = busy_us / jobs if jobs else 0.0
    found = list(signs)
    if used >= USED_FULL:
        found.append(Sign(kind="gauge", text=f"in use for {used:.0%} of the window"))
    return Resource(
        name=name,
        servers=servers,
        busy_us=busy_us,
        demand_us=round(demand_us, 3),
        ceiling_rate=round(servers * SECOND_US / demand_us, 1) if demand_us else 0.0,
        used=round(used, 4),
        passive=passive,
        signs=found,
    )


def attribute(
    window: str,
    *,
    jobs: int,
    wall_us: int,
    stages: Sequence[Stage],
    resources: Iterable[Resource],
    offered: bool = False,
) -> Attribution:
    """Say what limits a window.

    Of a resource that is merely held, the ceiling counts only when somebody stood in line for it: who holds a
    connection while the server computes has not found the limit.

    Args:
        window: its name.
        jobs: done in it.
        wall_us: its length.
        stages: where its time went.
        resources: what it demanded of each.
        offered: its rate is that of the load, not the most that it could do.
    """
    rate = jobs * SECOND_US / wall_us if wall_us else 0.0
    known = sorted((one for one in resources if one.demand_us > 0), key=lambda one: one.ceiling_rate)
    unexplained_us = sum(stage.exclusive_us for stage in stages if stage.name == UNEXPLAINED)
    found = Attribution(
        window=window,
        jobs=jobs,
        wall_us=wall_us,
        rate=round(rate, 1),
        stages=list(stages),
        explained=round(1 - unexplained_us / wall_us, 4) if wall_us and stages else 0.0,
        resources=known,
        verdict="unknown",
        sentence="Nothing was observed that could limit it.",
    )
    limiting = [one for one in known if not one.passive or any(sign.kind == "queue" for sign in one.signs)]
    if limiting:
        _judge(found, limiting, offered=offered)
    return found


def _judge(found: Attribution, limiting: Sequence[Resource], *, offered: bool) -> None:
    lowest = max(
        (one for one in limiting if one.ceiling_rate <= limiting[0].ceiling_rate * ALIKE),
        key=lambda one: len({sign.kind for sign in one.signs}),
    )
    following = next((one for one in limiting if one is not lowest), None)
    share = found.rate / lowest.ceiling_rate
    if share < FULL_SHARE and offered:
        found.verdict, found.next = "headroom", lowest.name
        found.gain = round(1 / share, 2)
        found.sentence = (
            f"Nothing is full at this load: {lowest.name} comes first, at {lowest.ceiling_rate:,.0f} jobs/s, "
            f"{1 / share:.1f} x what was asked for."
        )
        return
    if share < FULL_SHARE:
        found.verdict = "serialised"
        found.sentence = (
            f"Serialised: nothing is full. The nearest limit, {lowest.name}, would bear {lowest.ceiling_rate:,.0f} "
            f"jobs/s, {1 / share:.1f} x what was reached; the time goes to {_path(found.stages)}, one after the other."
        )
        return
    found.now = lowest.name
    if following:
        found.next = following.name
        found.gain = round(max(1.0, following.ceiling_rate / lowest.ceiling_rate), 2)
    kinds = {sign.kind for sign in lowest.signs}
    signs = "; ".join(sign.text for sign in lowest.signs) or "none"
    if len(kinds) < SIGNS_MIN:
        found.verdict = "unproven"
        found.sentence = (
            f"Probably limited by {lowest.name} ({share:.0%} of its ceiling), but a bottleneck needs two independent "
            f"signs, and there is: {signs}."
        )
        return
    found.verdict = "bottleneck"
    found.sentence = f"Limit now: {lowest.name} ({signs}). {_following(lowest, following)}"


def _following(lowest: Resource, following: Resource | None) -> str:
    if following is None:
        return "No other limit was observed."
    return (
        f"Limit next: {following.name}, full at {following.ceiling_rate:,.0f} jobs/s; "
        f"up to there is a gain of {max(1.0, following.ceiling_rate / lowest.ceiling_rate):.1f} x."
    )


def _path(stages: Sequence[Stage]) -> str:
    whole = sum(stage.exclusive_us for stage in stages) or 1
    longest = sorted(stages, key=lambda stage: -stage.exclusive_us)[:_PATH_STAGES]
    return ", ".join(f"{stage.name} ({stage.exclusive_us / whole:.0%})" for stage in longest if stage.exclusive_us)
