"""An app whose handlers are trouble."""

import os
import signal

from luciole.app import App
from luciole.client.retry import Retry
from luciole.executor.context import current

app = App("memory://crash", name="crash")


@app.job(run_in="process")
def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.job(run_in="process", retry=Retry(2))
def counts() -> int:
    """Fail twice, then say which attempt it was."""
    attempt = current().attempt
    if attempt < 3:
        raise ValueError(f"attempt {attempt}")
    return attempt
