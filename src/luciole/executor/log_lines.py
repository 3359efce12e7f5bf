"""Log lines on standard error, each with the execution and the attempt of the handler that wrote it."""

import logging
import sys

from luciole.executor.context import ExecutionFilter


def log_to_stderr(level: int) -> None:
    """Send log lines of this process from a level on to standard error, instead of wherever they went."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(ExecutionFilter())
    handler.setFormatter(_Lines("%(asctime)s %(levelname)-7s %(name)s%(where)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)


class _Lines(logging.Formatter):
    """Names the execution and the attempt of lines that a handler wrote."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        execution_id, attempt = getattr(record, "execution_id", "-"), getattr(record, "attempt", 0)
        record.where = f" [{execution_id} #{attempt}]" if attempt else ""
        return super().format(record)
