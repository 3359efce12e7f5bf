"""Optional dependencies: who lacks one is told what to install."""

from types import TracebackType

from luciole.errors import MissingExtra


class require:  # noqa: N801 - reads as a word of the language: `with require("postgres"): import asyncpg`
    """Guard the import of what an extra brings.

    ```python
    with require("postgres"):
        import asyncpg
    ```

    Raises:
        MissingExtra: a package is not installed; the message says how to get it.
    """

    def __init__(self, extra: str) -> None:
        self.extra = extra

    def __enter__(self) -> None:
        """Begin the guarded import."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ModuleNotFoundError):
            raise MissingExtra(
                f"the package {error.name} is not installed; to get it: pip install 'luciole[{self.extra}]'"
            ) from error
