"""The comparison of two revisions from its sides to its document."""

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from luciole.bench.ab.arms import Side, sides
from luciole.bench.ab.document import Document, judged_figure, side_told
from luciole.bench.ab.judging import Judged, Pairs, confirm
from luciole.bench.ab.order import Arm, Pair, pairs
from luciole.bench.ab.slices import Slices
from luciole.bench.backends import durable_folder, hide_passwords
from luciole.bench.deciding.accepted import Accepted
from luciole.bench.deciding.sequential import CONFIRMING_PAIRS, LOOKS, Call
from luciole.bench.environment import environment
from luciole.bench.leash import ended_by_sigterm, heeding_interrupts
from luciole.bench.lock import only_bench
from luciole.bench.profiles import find_profile
from luciole.bench.result import Result, outcome
from luciole.bench.run import INTERRUPTED
from luciole.bench.verdict import BenchError, Incorrect, InvalidRun, Verdict
from luciole.limits import SECOND_US
from luciole.model.instant import iso
from luciole.runtime.clock import Clock

_log = logging.getLogger("luciole.bench")

#: Slices that may be thrown away; more say that the machine is not fit to measure now.
_INVALID_MAX = 6


class AbOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What to compare, and how."""

    base: str
    head: str
    profile: str
    options: Sequence[str]  #: of each slice
    seed: int
    threshold: float
    pairs_max: int = LOOKS[-1][0]
    author: str | None = None
    command: Sequence[str] = ()
    start: Path  #: a folder of the working copy
    faults: Mapping[str, Mapping[str, str]] = {}  #: environment of each side; only the bench's own test has any
    accepted: Sequence[Accepted] = ()
    today: date


class Ab:
    """One comparison."""

    def __init__(
        self,
        orders: AbOrders,
        *,
        clock: Clock,
        progress: Callable[[str], None],
        lock: Path | None = None,
        both: tuple[Side, Side] | None = None,
    ) -> None:
        """Prepare it; nothing runs yet.

        Args:
            orders: what to compare.
            clock: what times it.
            progress: told of each pair.
            lock: the file of the lock; None: the machine's.
            both: the sides, when they are there already; None: what git has by the names in the orders.
        """
        self._orders = orders
        self._clock = clock
        self._progress = progress
        self._lock = lock
        self._both = both
        self._profile = find_profile(orders.profile)
        self._pairs = pairs(orders.seed)
        self._order: list[str] = []
        self._invalid: list[str] = []
        self._judged: dict[str, Judged] = {}
        self._sides: dict[Arm, Side] = {}
        self._environment: dict[str, Any] = {}
        self._heed: Callable[[], None]

    def run(self) -> Document:
        """Run until it is decided; whatever goes wrong ends as a verdict in the document."""
        started, begun_us = iso(self._clock.now_us()), self._clock.monotonic_us()
        try:
            with ended_by_sigterm(), heeding_interrupts() as heed, only_bench(self._lock), self._slices() as slices:
                self._heed = heed
                self._environment = environment(slices.folder)
                self._decide(slices)
            verdict, reason = self._verdict()
        except BenchError as error:
            verdict, reason = error.verdict, hide_passwords(str(error))
        except KeyboardInterrupt:
            verdict, reason = Verdict.INVALID, INTERRUPTED
        except Exception as error:  # noqa: BLE001 - whatever it was, the document says so
            _log.exception("the comparison broke off")
            verdict, reason = Verdict.INVALID, hide_passwords(f"{type(error).__name__}: {error}")
        return self._document(verdict, reason, started, round((self._clock.monotonic_us() - begun_us) / SECOND_US, 3))

    @contextmanager
    def _slices(self) -> Iterator[Slices]:
        """Bring both sides; all that this leaves on the disk is gone afterwards."""
        folder = Path(tempfile.mkdtemp(prefix="luciole-ab-", dir=durable_folder()))
        folder.chmod(0o755)  # Servers do not run as root.
        try:
            with self._brought(folder) as (base, head):
                self._sides = {"base": base, "head": head}
                yield Slices(
                    profile=self._orders.profile,
                    options=self._orders.options,
                    folder=folder,
                    environment=self._orders.faults,
                )
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _brought(self, folder: Path) -> AbstractContextManager[tuple[Side, Side]]:
        if self._both:
            return nullcontext(self._both)
        return sides(self._orders.base, self._orders.head, folder, start=self._orders.start)

    def _decide(self, slices: Slices) -> None:
        """Run pairs, look after 8, 16 and 24, confirm what became worse, and stop as soon as nothing is open."""
        seen = self._empty()
        for look, _ in LOOKS:
            if look > self._orders.pairs_max:
                break
            while len(seen.base) < look:
                self._pair(slices, seen, f"pair {len(seen.base) + 1}/{look}")
            for name, judged in seen.judged().items():
                if name not in self._judged or not self._judged[name].judgement.final:
                    self._judged[name] = judged
            suspects = [
                one for one in self._judged.values() if one.judgement.call is Call.REGRESSED and one.confirmed is None
            ]
            if suspects:
                self._confirm(slices, suspects)
            calls = [one.judgement.call for one in self._judged.values()]
            if Call.REGRESSED in calls or all(one.judgement.final for one in self._judged.values()):
                break

    def _confirm(self, slices: Slices, suspects: Sequence[Judged]) -> None:
        names = ", ".join(one.name for one in suspects)
        self._progress(f"worse: {names}; {CONFIRMING_PAIRS} fresh pairs to confirm it")
        fresh = self._empty()
        while len(fresh.base) < CONFIRMING_PAIRS:
            self._pair(slices, fresh, f"confirming {len(fresh.base) + 1}/{CONFIRMING_PAIRS}")
        for one in suspects:
            self._judged[one.name] = confirm(one, fresh)

    def _empty(self) -> Pairs:
        return Pairs(under_load=self._profile.under_load, threshold=self._orders.threshold)

    def _pair(self, slices: Slices, into: Pairs, what: str) -> None:
        """Run one pair; when one of its slices says nothing, the pair is run anew."""
        pair: Pair = next(self._pairs)
        found: dict[Arm, Result] = {}
        for arm in pair:
            try:
                self._heed()
                found[arm] = slices.run(arm, self._sides[arm])
            except InvalidRun as error:
                self._invalid.append(str(error))
                self._progress(f"{what}: thrown away: {error}")
                if len(self._invalid) > _INVALID_MAX:
                    raise InvalidRun(f"{len(self._invalid)} slices said nothing, the last: {error}") from None
                self._pair(slices, into, what)
                return
            except Incorrect as error:
                raise Incorrect(f"in {arm.upper()}, {error}") from None
        self._order.append(pair.first)
        into.add(found["base"], found["head"])
        self._progress(what)

    def _verdict(self) -> tuple[Verdict, str]:
        by_call: dict[Call, list[str]] = {call: [] for call in Call}
        for one in self._judged.values():
            if not self._note(one).startswith("accepted"):
                by_call[one.judgement.call].append(f"{one.name} {one.judgement.change * 100:+.1f} %")
        worse = by_call[Call.REGRESSED]
        counts = ", ".join(f"{len(names)} {call.value}" for call, names in by_call.items() if names)
        if worse:
            return Verdict.REGRESSED, f"worse: {', '.join(worse)}; {counts}"
        if by_call[Call.INCONCLUSIVE]:
            return Verdict.INCONCLUSIVE, f"open: {', '.join(by_call[Call.INCONCLUSIVE])}; {counts}"
        return Verdict.OK, counts or "everything that became worse was accepted"

    def _note(self, judged: Judged) -> str:
        """Return what stands beside a judgement: whether it was confirmed, or accepted."""
        if judged.confirmed is False:
            return "not confirmed"
        if judged.judgement.call is not Call.REGRESSED:
            return ""
        backends = {option for option in self._orders.options if option in self._profile.backends}
        backend = backends.pop() if backends else "sqlite"
        for entry in self._orders.accepted:
            if not entry.covers(self._orders.profile, backend, judged.name.partition(" ")[0]):
                continue
            if entry.expires >= self._orders.today and judged.judgement.change <= entry.size:
                return f"accepted until {entry.expires}: {entry.reason}"
            return f"more than was accepted, or past its day ({entry.expires})"
        return ""

    def _document(self, verdict: Verdict, reason: str, started: str, duration_s: float) -> Document:
        orders = self._orders
        unknown = {"asked": "?", "revision": "?", "dirty": False}
        return Document(
            profile=orders.profile,
            options=[hide_passwords(word) for word in orders.options],
            verdict=outcome(verdict, reason),
            started=started,
            duration_s=duration_s,
            author=orders.author,
            command=[hide_passwords(word) for word in orders.command],
            environment=self._environment,
            base={**unknown, "asked": orders.base, **(side_told(self._sides["base"]) if self._sides else {})},
            head={**unknown, "asked": orders.head, **(side_told(self._sides["head"]) if self._sides else {})},
            seed=orders.seed,
            order=self._order,
            threshold=orders.threshold,
            slices=2 * len(self._order),
            invalid=self._invalid,
            figures=[judged_figure(one, self._note(one)) for one in self._judged.values()],
        )
