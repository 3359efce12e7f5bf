"""A client that is killed in the middle: what was acknowledged is there, and nothing is there twice."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from luciole.app import App
from luciole.model.execution import ExecutionState
from luciole.store.reads import ExecutionFilter
from luciole.wiring import open_store

pytestmark = pytest.mark.slow

CROWD = """
import asyncio
from luciole import App

app = App({dsn!r}, name="shop")

@app.job
async def charge(order_id: int) -> None:
    del order_id

async def one(number: int) -> None:
    handle = await charge.options(key=f"order-{{number}}").enqueue(number)
    print(number, handle.id, flush=True)

async def main() -> None:
    await app.open()
    for start in range(0, 1_000_000, 200):
        await asyncio.gather(*(one(number) for number in range(start, start + 200)))

asyncio.run(main())
"""


def enqueue_until_killed(dsn: str, count: int) -> dict[str, str]:
    """Let a crowd enqueue, kill it after so many answers, and return all that were answered."""
    command = [sys.executable, "-c", CROWD.format(dsn=dsn)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(count)]
        process.send_signal(signal.SIGKILL)
        words = [line.split() for line in [*lines, *process.stdout]]
    return {pair[0]: pair[1] for pair in words if len(pair) == 2}


async def test_a_killed_client_leaves_what_it_acknowledged_and_no_more_than_it_asked_for(tmp_path: Path) -> None:
    dsn = f"sqlite:///{tmp_path / 'shop.db'}"
    acknowledged = enqueue_until_killed(dsn, 1_500)
    app = App(dsn, name="shop")

    @app.job
    async def charge(order_id: int) -> None:
        del order_id

    async with app:
        for number, execution_id in acknowledged.items():
            handle = app.find_execution(execution_id)
            assert await handle.state() is ExecutionState.READY  # I9: it was durable when it was answered.
            again = await charge.options(key=f"order-{number}").enqueue(int(number))
            assert (again.created, again.id) == (False, execution_id)
    store = await open_store(dsn)
    keys: list[str | None] = []
    query = ExecutionFilter(schedule_id=0)
    while True:
        page = await store.list_executions(query)
        keys += [row.request_key for row in page.rows]
        if page.next is None:
            break
        query = replace(query, page=page.next)
    await store.close()
    assert len(keys) == len(set(keys))
    assert len(acknowledged) >= 1_500
    assert len(keys) <= len(acknowledged) + 200  # At most one group was under way.
