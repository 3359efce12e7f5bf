"""Stores that are told the same answer the same, whatever the sequence of verbs."""

from hypothesis import settings

from luciole.testing.agreement import StoreAgreement
from luciole.testing.contract.harness import MemoryHarness


class MemoryAgreesWithItself(StoreAgreement):
    """What the machine compares is no more than what two equal stores agree on."""

    make_left = MemoryHarness.make
    make_right = MemoryHarness.make


MemoryAgreesWithItself.TestCase.settings = settings(max_examples=25, stateful_step_count=40)
TestMemoryAgreesWithItself = MemoryAgreesWithItself.TestCase
