"""Looking: whoever asks for states while others are being told shares the next statement."""

import asyncio
from collections.abc import Sequence

from luciole import limits
from luciole.errors import Rejected
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.store.spi import ReadStore

_Asked = tuple[ExecutionKey, "asyncio.Future[ExecutionState | None]"]


class StateLooks:
    """Looks at the states of executions, on one event loop.

    A lone caller asks the store by itself, at once. Those who come while a look is under way are answered by the next
    one, which begins after they asked: what they are told is never older than their question.
    """

    def __init__(self, store: ReadStore) -> None:
        self._store = store
        self._asked: list[_Asked] = []
        self._under_way = False
        self._pump: asyncio.Task[None] | None = None

    async def state(self, key: ExecutionKey) -> ExecutionState | None:
        """Return the state of an execution, or None when there is none.

        Raises:
            StoreUnavailable: the store can't be reached.
        """
        loop = asyncio.get_running_loop()
        if self._under_way:
            answer: asyncio.Future[ExecutionState | None] = loop.create_future()
            self._asked.append((key, answer))
            return await answer
        self._under_way = True
        try:
            (state,) = await self._store.execution_states([key])
            return state
        finally:
            if self._asked:
                self._pump = loop.create_task(self._run())
            else:
                self._under_way = False

    async def close(self) -> None:
        """Wait until everybody who asked has an answer."""
        if self._pump is not None:
            await asyncio.wait([self._pump])

    async def _run(self) -> None:
        try:
            while self._asked:
                group, self._asked = self._asked[: limits.PAGE_MAX], self._asked[limits.PAGE_MAX :]
                await self._look([one for one in group if not one[1].done()])
                await asyncio.sleep(0)  # Who was answered just now and asks again comes with the next group.
        except BaseException as problem:
            _fail(self._asked, problem)  # Nobody would look for those who had not had their turn.
            self._asked = []
            raise
        finally:
            self._under_way = False
            self._pump = None

    async def _look(self, group: Sequence[_Asked]) -> None:
        if not group:
            return
        try:
            states = await self._store.execution_states([key for key, _ in group])
        except Rejected as problem:
            if len(group) == 1:
                _fail(group, problem)
                return
            for one in group:  # I7: one that the store refuses does not take the others with it.
                await self._look([one])
        except BaseException as problem:
            _fail(group, problem)
            if not isinstance(problem, Exception):
                raise
        else:
            for (_, answer), state in zip(group, states, strict=True):
                if not answer.done():
                    answer.set_result(state)


def _fail(group: Sequence[_Asked], problem: BaseException) -> None:
    for _, answer in group:
        if not answer.done():
            answer.set_exception(problem)
