"""The memory store: the executable specification of every verb, one file a role."""

from luciole.store.memory.state import MemoryState
from luciole.store.memory.store import MemoryStore

__all__ = ["MemoryState", "MemoryStore"]
