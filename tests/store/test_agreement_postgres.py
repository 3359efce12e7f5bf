"""PostgreSQL answers as the memory store does, whatever the sequence of verbs."""

from collections.abc import Awaitable

from hypothesis.stateful import run_state_machine_as_test

from luciole.testing.agreement import StoreAgreement, StoreSerializes
from luciole.testing.contract.harness import MemoryHarness, StoreHarness
from tests.store.examples import as_found
from tests.store.postgres_harness import PostgresHarness


def test_postgres_answers_as_memory_does(postgres_dsn: str) -> None:
    class PostgresAgreesWithMemory(StoreAgreement):
        make_left = MemoryHarness.make

        @staticmethod
        def make_right() -> Awaitable[StoreHarness]:
            return PostgresHarness.make(postgres_dsn)

    chosen = as_found(10)
    run_state_machine_as_test(PostgresAgreesWithMemory, settings=chosen)


def test_two_verbs_at_one_moment_act_as_if_one_came_after_the_other(postgres_dsn: str) -> None:
    class PostgresSerializes(StoreSerializes):
        @staticmethod
        def make_right() -> Awaitable[StoreHarness]:
            return PostgresHarness.make(postgres_dsn)

    chosen = as_found(5, steps=50)
    run_state_machine_as_test(PostgresSerializes, settings=chosen)
