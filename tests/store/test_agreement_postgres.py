"""PostgreSQL answers as the memory store does, whatever the sequence of verbs."""

from collections.abc import Awaitable

from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from luciole.testing.agreement import StoreAgreement, StoreSerializes
from luciole.testing.contract.harness import MemoryHarness, StoreHarness
from tests.store.postgres_harness import PostgresHarness

AS_FOUND = (Phase.explicit, Phase.reuse, Phase.generate)


def test_postgres_answers_as_memory_does(postgres_dsn: str) -> None:
    class PostgresAgreesWithMemory(StoreAgreement):
        make_left = MemoryHarness.make

        @staticmethod
        def make_right() -> Awaitable[StoreHarness]:
            return PostgresHarness.make(postgres_dsn)

    chosen = settings(max_examples=10, stateful_step_count=40, phases=AS_FOUND)
    run_state_machine_as_test(PostgresAgreesWithMemory, settings=chosen)


def test_two_verbs_at_one_moment_act_as_if_one_came_after_the_other(postgres_dsn: str) -> None:
    class PostgresSerializes(StoreSerializes):
        @staticmethod
        def make_right() -> Awaitable[StoreHarness]:
            return PostgresHarness.make(postgres_dsn)

    chosen = settings(max_examples=5, stateful_step_count=50, phases=AS_FOUND)
    run_state_machine_as_test(PostgresSerializes, settings=chosen)
