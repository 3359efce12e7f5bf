"""What a store was asked in a window, call by call, and what of the wall time each stage explains."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from luciole.runtime.clock import Clock
from luciole.store.spi import Store


class Span(NamedTuple):
    """One call of a store verb."""

    verb: str
    begun_us: int  #: by the host's monotonic clock
    ended_us: int
    note: Any  #: what was kept of its result


class Spans:
    """Collects the calls of a store; costs two looks at the clock a call."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.calls: list[Span] = []

    def clear(self) -> None:
        """Forget what was collected."""
        self.calls = []

    def around(self, store: Store, verbs: Mapping[str, Callable[[Any], Any]]) -> Store:
        """Return the store with these verbs watched; all else passes through.

        Args:
            store: what is called.
            verbs: each with what is kept of its result; results themselves would fill the memory.
        """
        watched = {verb: self._watch(verb, getattr(store, verb), keep) for verb, keep in verbs.items()}
        return pass_through(store, watched)

    def _watch(
        self, verb: str, call: Callable[..., Awaitable[Any]], keep: Callable[[Any], Any]
    ) -> Callable[..., Awaitable[Any]]:
        async def watched(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the verb has them
            begun_us = self._clock.monotonic_us()
            result = await call(*args, **kwargs)
            self.calls.append(Span(verb, begun_us, self._clock.monotonic_us(), keep(result)))
            return result

        return watched


def pass_through(store: Store, watched: Mapping[str, Callable[..., Awaitable[Any]]]) -> Store:
    """Return the store with some verbs of it replaced; all else passes through."""
    return cast("Store", _Watched(store, watched))


class _Watched:
    def __init__(self, store: Store, watched: Mapping[str, Callable[..., Awaitable[Any]]]) -> None:
        self._store = store
        self.__dict__.update(watched)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the store has it
        return getattr(self._store, name)


def exclusive_stages(spans: Iterable[Span], order: Sequence[str], begun_us: int, ended_us: int) -> dict[str, int]:
    """Return how many microseconds of a window each stage alone explains.

    At each instant the first verb of `order` that is under way has the time; `unexplained` is when none is: the
    process computes, or waits for its turn. The values add up to the window.
    """
    edges: list[tuple[int, int, str]] = []
    for span in spans:
        begun, ended = max(span.begun_us, begun_us), min(span.ended_us, ended_us)
        if begun < ended and span.verb in order:
            edges += [(begun, 1, span.verb), (ended, -1, span.verb)]
    open_calls = dict.fromkeys(order, 0)
    stages = dict.fromkeys((*order, "unexplained"), 0)
    at_us = begun_us
    for edge_us, step, verb in sorted(edges):
        holder = next((name for name in order if open_calls[name]), "unexplained")
        stages[holder] += edge_us - at_us
        open_calls[verb] += step
        at_us = edge_us
    stages["unexplained"] += ended_us - at_us
    return stages


def in_flight(spans: Iterable[Span], begun_us: int, ended_us: int) -> dict[str, float]:
    """Return how many calls of each verb were under way in a window on average; over 1 when some ran beside others."""
    inside: dict[str, int] = {}
    for span in spans:
        inside_us = min(span.ended_us, ended_us) - max(span.begun_us, begun_us)
        if inside_us > 0:
            inside[span.verb] = inside.get(span.verb, 0) + inside_us
    return {verb: round(us / (ended_us - begun_us), 4) for verb, us in inside.items()}
