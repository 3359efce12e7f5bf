import asyncio

import pytest

from luciole import limits
from luciole.errors import Unavailable
from luciole.gateway.local import LocalGateway, local_pair
from luciole.wire.connection import Connection
from luciole.wire.messages import Grant, Message


async def test_frames_arrive_in_order_and_unchanged() -> None:
    ours, theirs = local_pair()
    frames: list[tuple[Message, ...]] = [(Grant(credits=number), Grant(credits=-number)) for number in range(5)]
    for frame in frames:
        await theirs.send(frame)
    assert [await ours.receive() for _ in frames] == frames


async def test_an_orderly_close_is_heard_after_what_was_sent_before_it() -> None:
    ours, theirs = local_pair()
    await theirs.send((Grant(credits=1),))
    await theirs.close()
    await theirs.close()
    assert await ours.receive() == (Grant(credits=1),)
    assert await ours.receive() == ()
    with pytest.raises(Unavailable):
        await ours.send((Grant(credits=1),))


async def test_a_severed_connection_raises_at_both_ends() -> None:
    ours, theirs = local_pair()
    waiting = asyncio.create_task(ours.receive())
    await asyncio.sleep(0)
    await theirs.sever()
    with pytest.raises(Unavailable):
        await waiting
    with pytest.raises(Unavailable):
        await theirs.receive()


async def test_a_sender_waits_while_the_other_end_does_not_read() -> None:
    ours, theirs = local_pair()
    for _ in range(limits.LOCAL_FRAMES_MAX):
        await theirs.send((Grant(credits=1),))
    blocked = asyncio.create_task(theirs.send((Grant(credits=2),)))
    await asyncio.sleep(0)
    assert not blocked.done()
    await ours.receive()
    await blocked


async def test_a_sender_that_waits_hears_of_the_end() -> None:
    ours, theirs = local_pair()
    for _ in range(limits.LOCAL_FRAMES_MAX):
        await theirs.send((Grant(credits=1),))
    blocked = asyncio.create_task(theirs.send((Grant(credits=2),)))
    await asyncio.sleep(0)
    await ours.close()
    with pytest.raises(Unavailable):
        await blocked


async def test_a_gateway_serves_each_connection_and_ends_them_all() -> None:
    async def echo(connection: Connection) -> None:
        while frame := await connection.receive():
            await connection.send(frame)

    gateway = LocalGateway(echo)
    first, second = await gateway.connect(), await gateway.connect()
    await first.send((Grant(credits=1),))
    await second.send((Grant(credits=2),))
    assert await first.receive() == (Grant(credits=1),)
    assert await second.receive() == (Grant(credits=2),)
    await gateway.close()
    assert await first.receive() == ()


async def test_a_session_that_fails_ends_its_connection() -> None:
    async def fail(connection: Connection) -> None:
        await connection.receive()
        raise RuntimeError("a surprise")

    theirs = await LocalGateway(fail).connect()
    await theirs.send((Grant(credits=1),))
    assert await theirs.receive() == ()
