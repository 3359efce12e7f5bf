"""What users of Luciole, its bench and its own tests test with."""

from luciole.testing.app import AppTest
from luciole.testing.clock import FakeClock

__all__ = ["AppTest", "FakeClock"]
