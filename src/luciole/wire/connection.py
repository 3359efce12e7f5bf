"""The one thing that a transport must do: carry frames both ways until it is closed."""

from collections.abc import Sequence
from typing import Protocol

from luciole.wire.messages import Message


class Connection(Protocol):
    """One live connection between an executor and a node."""

    async def send(self, frame: Sequence[Message]) -> None:
        """Send one frame; returns when it is handed to the transport, whose flow control may make it wait.

        Raises:
            Unavailable: the connection is gone; the frame may or may not have arrived.
        """
        ...

    async def receive(self) -> Sequence[Message]:
        """Return the next frame; an empty one says that the other end closed in order.

        Raises:
            Unavailable: the connection broke.
        """
        ...

    async def close(self) -> None:
        """End the connection; safe to repeat."""
        ...
