"""Stores that are told the same answer the same, whatever the sequence of verbs."""

from hypothesis import Phase, settings

from luciole.testing.agreement import StoreAgreement, StoreSerializes
from luciole.testing.contract.harness import MemoryHarness
from tests.store.sqlite_harness import SqliteHarness

#: A sequence that finds something is printed as it was found: to make it shorter takes minutes on a database. Add
#: `Phase.shrink` for that.
AS_FOUND = (Phase.explicit, Phase.reuse, Phase.generate)


class MemoryAgreesWithItself(StoreAgreement):
    """What the machine compares is no more than what two equal stores agree on."""

    make_left = MemoryHarness.make
    make_right = MemoryHarness.make


MemoryAgreesWithItself.TestCase.settings = settings(max_examples=10, stateful_step_count=40, phases=AS_FOUND)
TestMemoryAgreesWithItself = MemoryAgreesWithItself.TestCase


class SqliteAgreesWithMemory(StoreAgreement):
    make_left = MemoryHarness.make
    make_right = SqliteHarness.make


SqliteAgreesWithMemory.TestCase.settings = settings(max_examples=10, stateful_step_count=40, phases=AS_FOUND)
TestSqliteAgreesWithMemory = SqliteAgreesWithMemory.TestCase


class MemorySerializes(StoreSerializes):
    """The machine with races finds nothing where nothing can overlap."""

    make_right = MemoryHarness.make


MemorySerializes.TestCase.settings = settings(max_examples=10, stateful_step_count=40, phases=AS_FOUND)
TestMemorySerializes = MemorySerializes.TestCase
