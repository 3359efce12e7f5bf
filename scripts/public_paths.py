"""What an app can do with any revision of the product, timed: through the public API and the command line alone.

    LUCIOLE_DSN=… python scripts/public_paths.py [--jobs 5000]

Older revisions have no profile for these paths, so both sides of a comparison are driven by this file. It prints one
line of JSON: rates a second, by name. `LUCIOLE_DSN` names an empty store, `PYTHONPATH` the revision that runs. One look
goes past the API: whether the outbox is empty is asked of the store, since no revision tells that faster.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from luciole import App, once

app = App(name="paths")

#: Of all that must happen.
_MOST_S = 120

_LOOK_S = 0.004
_SLOTS = 1_000


@app.job
async def nothing(filler: str) -> None:
    """Take some text and do nothing with it."""
    del filler


async def enqueue_rates(jobs: int) -> dict[str, float]:
    """Enqueue one by one, keyed, by several callers at once and in bulk; look executions up; no node runs."""
    singles = max(8, jobs // 10)
    await nothing.enqueue("")
    rates = {}

    async def plain(number: int) -> None:
        del number
        await nothing.enqueue("")

    async def keyed(number: int) -> None:
        await nothing.options(key=f"key-{number}").enqueue("")

    rates["single_rate"] = await _rate(plain, singles, callers=1)
    rates["keyed_rate"] = await _rate(keyed, singles, callers=1)
    rates["by_8_rate"] = await _rate(plain, jobs // 2, callers=8)
    rates["by_64_rate"] = await _rate(plain, jobs, callers=64)
    begun_s = _elapsed_s()
    handles = await nothing.enqueue_many(["x" * 64] * jobs)
    rates["bulk_rate"] = jobs / (_elapsed_s() - begun_s)

    async def load(number: int) -> None:
        await handles[number].state()

    rates["load_rate"] = await _rate(load, jobs // 2, callers=8)
    return rates


async def drain_rates(dsn: str, jobs: int, folder: Path) -> dict[str, float]:
    """Let one node and one executor behind gRPC drain what is due at one instant: enqueued, then scheduled."""
    async with _cluster(dsn, folder):
        await nothing.enqueue_many([""] * (jobs // 5))  # What is there is warm afterwards.
        await _empty(dsn)
        at = _now() + timedelta(seconds=2 + jobs / 10_000)
        await nothing.options(at=at).enqueue_many([""] * jobs)
        drained_s = await _drained(dsn, at)
        at = _now() + timedelta(seconds=3 + jobs / 5_000)
        for number in range(jobs):
            app.schedule(f"once-{number}", nothing.bind(""), once(at))
        begun_s = _elapsed_s()
        await app.declare()
        declared_s = _elapsed_s() - begun_s
        fired_s = await _drained(dsn, at)
    return {"drain_rate": jobs / drained_s, "declare_rate": jobs / declared_s, "fire_rate": jobs / fired_s}


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a user's program has no clock of ours


def _elapsed_s() -> float:
    return asyncio.get_running_loop().time()


async def _rate(one: Callable[[int], Coroutine[Any, Any, None]], count: int, *, callers: int) -> float:
    async def caller(first: int) -> None:
        for number in range(first, count, callers):
            await one(number)

    begun_s = _elapsed_s()
    await asyncio.gather(*(caller(first) for first in range(callers)))
    return count / (_elapsed_s() - begun_s)


async def _drained(dsn: str, at: datetime) -> float:
    """Return how long after an instant the outbox is empty."""
    left_s = (at - _now()).total_seconds()
    if left_s <= 0:
        raise SystemExit("what was to be drained was due before all of it was durable")
    # A schedule's entry is made at its instant: until then the outbox is empty, too.
    await asyncio.sleep(left_s)
    while not await _any_entry(dsn):
        await asyncio.sleep(_LOOK_S)
        if (_now() - at).total_seconds() > _MOST_S:
            raise SystemExit("nothing became due")
    await _empty(dsn)
    return (_now() - at).total_seconds()


async def _empty(dsn: str) -> None:
    begun_s = _elapsed_s()
    while await _any_entry(dsn):
        if _elapsed_s() - begun_s > _MOST_S:
            raise SystemExit("some executions did not end")
        await asyncio.sleep(_LOOK_S)


_open: list[Any] = []  #: the connection that looks


async def _any_entry(dsn: str) -> bool:
    if dsn.startswith("sqlite:"):
        with closing(sqlite3.connect(dsn.removeprefix("sqlite:///"), timeout=10)) as lite:
            return bool(lite.execute("SELECT EXISTS (SELECT 1 FROM entry)").fetchone()[0])
    if not _open:
        import asyncpg  # noqa: PLC0415 - not for SQLite

        _open.append(await asyncpg.connect(dsn))
    return bool(await _open[0].fetchval("SELECT EXISTS (SELECT 1 FROM luciole.entry)"))


@asynccontextmanager
async def _cluster(dsn: str, folder: Path) -> AsyncIterator[None]:
    file = folder / "address"
    children: list[asyncio.subprocess.Process] = []
    with (folder / "log").open("wb") as log:

        async def start(*words: str) -> None:
            environment = {**os.environ, "LUCIOLE_DSN": dsn, "PYTHONPATH": _path()}
            luciole = (sys.executable, "-m", "luciole")
            children.append(
                await asyncio.create_subprocess_exec(
                    *luciole, *words, env=environment, cwd=folder, stdout=log, stderr=log
                )
            )

        try:
            await start("node", "--listen", "127.0.0.1:0", "--address-file", str(file))
            begun_s = _elapsed_s()
            while not (address := _read(file)):
                if _elapsed_s() - begun_s > _MOST_S or children[0].returncode is not None:
                    raise SystemExit(f"the node did not start: {_read(folder / 'log')[-2_000:]}")
                await asyncio.sleep(_LOOK_S)
            await start("executor", "public_paths:app", "--node", address, "--slots", str(_SLOTS), "--no-declare")
            yield
        finally:
            for child in reversed(children):
                if child.returncode is None:
                    child.terminate()
                    await child.wait()


def _path() -> str:
    return os.pathsep.join((*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parent)))


def _read(file: Path) -> str:
    return file.read_text(errors="replace").strip() if file.exists() else ""


async def _all(dsn: str, jobs: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            rates = await enqueue_rates(jobs)
            return {**rates, **await drain_rates(dsn, jobs, Path(folder))}
        finally:
            for connection in _open:
                await connection.close()
            await app.close()


def main() -> int:
    """Run all paths on one store; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=5_000)
    options = parser.parse_args()
    dsn = os.environ["LUCIOLE_DSN"]
    if not dsn.startswith("sqlite:"):
        subprocess.run([sys.executable, "-m", "luciole", "migrate"], check=True, stdout=subprocess.DEVNULL)
    sys.stdout.write(json.dumps(asyncio.run(_all(dsn, options.jobs))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
