"""What users of Luciole, its bench and its own tests test with."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from luciole.testing.app import AppTest
    from luciole.testing.clock import FakeClock

__all__ = ["AppTest", "FakeClock"]

_PLACES = {"AppTest": "luciole.testing.app", "FakeClock": "luciole.testing.clock"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute may be anything
    """Import a name when it is used: whoever wants a server for tests needs no engine."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
