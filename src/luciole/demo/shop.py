"""The app of the demo: what its executor processes import."""

import asyncio

from luciole.app import App
from luciole.client.retry import Retry
from luciole.executor.context import current

app = App(name="shop")


class CardDeclined(Exception):
    """What a payment service answers now and then."""


@app.job
async def tick(number: int) -> int:
    """Do next to nothing, as most jobs do."""
    return number


@app.job
async def mail(to: str) -> str:
    """Take a while, as a mail server does; many of these are under way when their executor is killed."""
    for step in range(8):
        current().progress(f"{step}/8")
        await asyncio.sleep(0.1)
    return f"sent to {to}"


@app.job(retry=Retry(3, delay="200ms", jitter=0))
async def charge(order_id: int) -> str:
    """Fail at the first attempt and succeed at the second."""
    if current().attempt == 1:
        raise CardDeclined(f"order {order_id}: the card was declined")
    return f"order {order_id} paid"


@app.job
async def reindex() -> str:
    """Take longer than the time between two fires; its schedules forbid overlap."""
    await asyncio.sleep(2.5)
    return "reindexed"
