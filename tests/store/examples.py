"""How many sequences the agreement machine tries in a test."""

from hypothesis import HealthCheck, Phase, settings


def as_found(examples: int, *, steps: int = 40) -> settings:
    """Return settings under which a sequence that finds something is printed as it was found.

    To make it shorter takes minutes on a database: add `Phase.shrink` for that.
    """
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
        suppress_health_check=[*HealthCheck],  # A busy machine is no finding.
    )
