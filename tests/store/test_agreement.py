"""Stores that are told the same answer the same, whatever the sequence of verbs."""

from luciole.testing.agreement import StoreAgreement, StoreSerializes
from luciole.testing.contract.harness import MemoryHarness
from tests.store.examples import as_found
from tests.store.sqlite_harness import SqliteHarness


class MemoryAgreesWithItself(StoreAgreement):
    """What the machine compares is no more than what two equal stores agree on."""

    make_left = MemoryHarness.make
    make_right = MemoryHarness.make


MemoryAgreesWithItself.TestCase.settings = as_found(10)
TestMemoryAgreesWithItself = MemoryAgreesWithItself.TestCase


class SqliteAgreesWithMemory(StoreAgreement):
    make_left = MemoryHarness.make
    make_right = SqliteHarness.make


SqliteAgreesWithMemory.TestCase.settings = as_found(10)
TestSqliteAgreesWithMemory = SqliteAgreesWithMemory.TestCase


class MemorySerializes(StoreSerializes):
    """The machine with races finds nothing where nothing can overlap."""

    make_right = MemoryHarness.make


MemorySerializes.TestCase.settings = as_found(10)
TestMemorySerializes = MemorySerializes.TestCase
