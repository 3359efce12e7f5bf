"""Two real processes on one file, and a process that is killed in the middle of writing."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path

import pytest

from luciole.limits import SECOND_US
from luciole.model.ids import ExecutionKey
from luciole.store.reads import ExecutionFilter
from luciole.store.spi import Store
from luciole.testing.factories import NODE_A, a_job, a_schedule
from tests.store.sql.sqlite.files import SHARDS, look, opened

SCHEDULES = 600
REQUESTS = 300

#: Both plan what is due under the same lease, and enqueue the same request keys.
_RACING = f"""
import asyncio, json, sys
from pathlib import Path
from luciole.model.lease import Lease
from luciole.store.sql.sqlite.connecting import Durability
from luciole.testing.factories import a_plan, a_request
from tests.store.sql.sqlite.files import opened

async def plan(store, leases, before_us):
    created = []
    while True:
        due = await store.due_cursors(range(store.shards), before_us, limit=50)
        if not due.cursors:
            return created
        outcome = await store.commit_plan(a_plan(leases, *due.cursors))
        assert not outcome.refused
        created += [entry.key for entry in outcome.entries]

async def enqueue(store, first_id):
    answers = []
    for start in range(0, {REQUESTS}, 20):
        answers += await store.enqueue([
            a_request(first_id + number, 1, number % store.shards, key=f"key-{{number}}")
            for number in range(start, start + 20)
        ])
    return [[list(answer.key), answer.created] for answer in answers]

async def main():
    async with opened(Path(sys.argv[1]), durability=Durability.FULL) as store:
        told = json.loads(sys.argv[2])
        leases = [Lease(**fields) for fields in told["leases"]]
        print("ready", flush=True)
        sys.stdin.readline()
        created, answers = await asyncio.gather(
            plan(store, leases, told["before_us"]), enqueue(store, int(sys.argv[3]))
        )
        print(json.dumps({{"created": created, "answers": answers}}), flush=True)

asyncio.run(main())
"""

#: Enqueues in batches, says which are acknowledged, and is never done.
_WRITING = """
import asyncio, sys
from itertools import count
from pathlib import Path
from luciole.store.sql.sqlite.connecting import Durability
from luciole.testing.factories import a_request
from tests.store.sql.sqlite.files import opened

async def main():
    async with opened(Path(sys.argv[1]), durability=Durability.FULL) as store:
        async def write(batch):
            requests = [a_request(batch * 20 + n + 1, 1, n % store.shards, key=f"{batch}-{n}") for n in range(20)]
            await store.enqueue(requests)
            print(batch, flush=True)
        for start in count(int(sys.argv[2]), 5):
            await asyncio.gather(*(write(batch) for batch in range(start, start + 5)))

asyncio.run(main())
"""


async def start(source: str, *arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-c", source, *arguments, stdin=PIPE, stdout=PIPE)


async def all_keys(store: Store) -> set[ExecutionKey]:
    keys: set[ExecutionKey] = set()
    page: str | None = None
    while True:
        found = await store.list_executions(ExecutionFilter(page=page))
        keys |= {view.key for view in found.rows}
        page = found.next
        if page is None:
            return keys


async def test_two_processes_that_plan_and_enqueue_the_same_neither_double_nor_lose(tmp_path: Path) -> None:
    """I1, I2: the same file, the same lease, the same request keys, at the same time."""
    path = tmp_path / "shared.db"
    async with opened(path) as store:
        now_us = await store.now_us()
        schedules = [a_schedule(f"s{number:04}", fire_us=now_us - SECOND_US) for number in range(SCHEDULES)]
        first = (await store.take_ids(SCHEDULES)).first
        ids = await store.put_schedules(schedules, first_id=first)
        assert await store.intern_jobs([a_job()]) == (1,)
        leases = await store.acquire_leases(NODE_A, range(SHARDS), ttl_us=600 * SECOND_US)
        told = json.dumps(
            {
                "leases": [
                    {"shard": it.shard, "holder": it.holder, "fence": it.fence, "expires_us": it.expires_us}
                    for it in leases
                ],
                "before_us": now_us,
            }
        )
        processes = [await start(_RACING, str(path), told, str(first_id)) for first_id in (10_001, 20_001)]
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        outputs = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
        answers = [json.loads(out) for out, _ in outputs]
        planned = Counter(tuple(key) for answer in answers for key in answer["created"])
        assert set(planned.values()) == {1}
        assert {key[1] for key in planned} == set(ids)
        enqueued = [{tuple(key) for key, _ in answer["answers"]} for answer in answers]
        assert enqueued[0] == enqueued[1]
        made = Counter(tuple(key) for answer in answers for key, created in answer["answers"] if created)
        assert set(made.values()) == {1}
        assert len(made) == REQUESTS
        assert await all_keys(store) == {ExecutionKey(*key) for key in (*planned, *made)}
        assert look(path, "SELECT count(*) FROM entry") == [(SCHEDULES + REQUESTS,)]


@pytest.mark.slow
async def test_a_process_that_is_killed_while_it_writes_leaves_nothing_half_written(tmp_path: Path) -> None:
    """I9, I2: what was acknowledged is there, and of every batch all or nothing."""
    path = tmp_path / "killed.db"
    async with opened(path) as store:
        await store.intern_jobs([a_job()])
    for kill in range(5):
        first = kill * 1_000
        process = await start(_WRITING, str(path), str(first))
        assert process.stdout is not None
        acknowledged = [int(await process.stdout.readline()) for _ in range(10 + 7 * kill)]
        process.send_signal(signal.SIGKILL)
        rest, _ = await process.communicate()
        acknowledged += [int(line) for line in rest.split()]
        async with opened(path) as store:
            assert look(path, "PRAGMA integrity_check") == [("ok",)]
            found = Counter(-key.part // 20 for key in await all_keys(store) if -key.part > first * 20)
            counts = Counter((-key.part - 1) // 20 for key in await all_keys(store))
            assert {batch for batch in counts if counts[batch] != 20} == set()
            assert set(acknowledged) <= set(counts)
            assert found
    executions, entries, keys = (
        look(path, f"SELECT count(*) FROM {table}")[0][0] for table in ("execution", "entry", "request_key")
    )
    assert executions == entries == keys
