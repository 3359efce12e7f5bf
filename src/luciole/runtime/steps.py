"""Steps inside a part: what a call of a store or a pass of a planner is made of; told only while somebody measures."""

from typing import Protocol


class Steps(Protocol):
    """Is told when a step begins and ends; a part that is given none pays one comparison a step."""

    def begin(self) -> int:
        """Return the time, by whatever clock the steps are kept."""
        ...

    def end(self, step: str, begun_us: int) -> None:
        """Note that a step ended now; may be called from any thread.

        Args:
            step: its name.
            begun_us: what `begin` returned.
        """
        ...
