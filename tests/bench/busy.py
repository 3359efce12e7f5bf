"""What a bench may say of a machine that others use, instead of measuring it."""

from collections.abc import Sequence

from luciole.bench.verdict import Verdict

#: Parts of the reasons for which a run is invalid although the product did nothing wrong.
_REASONS = ("not registered when", "had not come to rest", "was starved", "the hypervisor took", "generator lagged")


def too_busy(code: int, lines: Sequence[str]) -> bool:
    """Whether a run ended by saying that the machine was too busy for it; any other invalid run is a failure."""
    return code == Verdict.INVALID and any(reason in lines[-1] for reason in _REASONS)
