"""How a run ends: the verdict, its exit code, and what stops a run early."""

from enum import IntEnum


class Verdict(IntEnum):
    """The exit codes of the bench; their lower-case names stand in results."""

    OK = 0
    REGRESSED = 1
    USAGE = 2
    INCORRECT = 3  #: correctness is violated: beats all others, and the figures are void
    NOT_COMPARABLE = 4
    INCONCLUSIVE = 5
    INVALID = 6  #: the run itself can't be trusted: it says nothing about the product
    OBJECTIVE_MISSED = 7
    BACKEND_UNAVAILABLE = 8

    @property
    def word(self) -> str:
        """The verdict as results and the last line of the output name it."""
        return self.name.lower().replace("_", "-")


class BenchError(Exception):
    """A run can't go on; carries the verdict that it ends with."""

    verdict = Verdict.INVALID


class Usage(BenchError):
    """The command asks for what does not exist or contradicts itself."""

    verdict = Verdict.USAGE


class InvalidRun(BenchError):
    """Something made the measurement worthless: another bench, a late generator, a dead process."""

    verdict = Verdict.INVALID


class BackendUnavailable(BenchError):
    """The store to measure can't be had here."""

    verdict = Verdict.BACKEND_UNAVAILABLE


class Incorrect(BenchError):
    """Correctness is violated: whatever was measured is void."""

    verdict = Verdict.INCORRECT


class NotReadable(BenchError):
    """A stored result can't be read by this version, or is none."""

    verdict = Verdict.NOT_COMPARABLE


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return the verdict that stands for all: incorrect beats all, then what makes figures worthless."""
    order = (
        Verdict.INCORRECT,
        Verdict.BACKEND_UNAVAILABLE,
        Verdict.INVALID,
        Verdict.USAGE,
        Verdict.NOT_COMPARABLE,
        Verdict.REGRESSED,
        Verdict.OBJECTIVE_MISSED,
        Verdict.INCONCLUSIVE,
    )
    return next((verdict for verdict in order if verdict in verdicts), Verdict.OK)
