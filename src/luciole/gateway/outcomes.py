"""Outcomes: what memory makes of a settlement once the store has answered."""

from collections.abc import Callable
from dataclasses import dataclass

from luciole import limits
from luciole.gateway.flights import Flights
from luciole.gateway.holds import Holds
from luciole.model.execution import ExecutionState
from luciole.model.outbox import Entry, EntryState, Settled, Settlement
from luciole.model.retrying import next_entry
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry

#: Names of counters, made once.
_ANSWERS = {settled: f"settled.{settled.name.lower()}" for settled in Settled}
_ENDS = {state: f"ended.{state.name.lower()}" for state in ExecutionState}


@dataclass(slots=True, kw_only=True)
class Outcomes:
    """Ends flights, forgets entries, and keeps the next attempt in memory when it is due soon."""

    holds: Holds
    flights: Flights
    store_clock: StoreClock
    telemetry: Telemetry
    wake_delivery: Callable[[], None]
    wake_polling: Callable[[], None]

    def apply(self, entry: Entry | None, settlement: Settlement, settled: Settled) -> None:
        """Bring memory up to what the store said about one settlement."""
        key, attempt = settlement.key, settlement.attempt
        self.flights.end(key, attempt)
        self.telemetry.counters[_ANSWERS[settled]] += 1
        if settled is Settled.SETTLED:
            self.telemetry.counters[_ENDS[settlement.state]] += 1
            if (
                settlement.due_us is not None
                and entry is not None
                and (then := next_entry(entry, settlement)) is not None
            ):
                now_us = self.store_clock.now_us()
                if then.due_us - now_us <= limits.RETRY_KEPT_US and self.holds.entry(key) is not None:
                    self.holds.replace(then._replace(state=EntryState.READY), now_us)
                    self.wake_delivery()
                    return
            if settlement.releases:
                self.wake_polling()  # A successor may have become ready.
        # A refused settlement says nothing of a newer attempt that this node knows.
        if self.holds.forget(key, attempt):
            self.wake_polling()
