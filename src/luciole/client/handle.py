"""Handles: one execution, wherever it runs."""

from typing import Any, Generic, TypeVar, cast

from luciole.client.home import Home, twin
from luciole.errors import ExecutionFailed
from luciole.model.duration import Duration, duration_us
from luciole.model.execution import ExecutionState, ExecutionView
from luciole.model.ids import ExecutionKey
from luciole.service import executions
from luciole.wire.calls import CallCodec

R_co = TypeVar("R_co", covariant=True)


class Handle(Generic[R_co]):
    """One execution: its state, its end, its result.

    Attributes:
        key: what makes it unique.
        created: False when the request key existed: this is the execution that it names. None for a handle made
            from an id.
    """

    __slots__ = ("_codec", "_home", "created", "key")

    def __init__(self, home: Home, key: ExecutionKey, codec: CallCodec | None, *, created: bool | None = None) -> None:
        self._home = home
        self._codec = codec
        self.key = key
        self.created = created

    @property
    def id(self) -> str:
        """The public id, as the command line shows it."""
        return self.key.text()

    async def result(self, timeout: Duration | None = None) -> R_co:  # noqa: ASYNC109 - virtual time must be able to pass it
        """Wait for the end; return what the handler returned, typed as it promised.

        Args:
            timeout: give up waiting after so long; the execution goes on.

        Raises:
            ExecutionFailed: it ended otherwise; the message holds the state and the last error.
            ResultTimeout: it has not ended in time.
            NotFound: there is no such execution; retention may have pruned it.
        """
        timeout_us = None if timeout is None else duration_us(timeout, field="timeout")
        view = await self._home.call(lambda client: client.ended(self.key, timeout_us))
        if view.state is not ExecutionState.SUCCEEDED:
            reason, _, trace = (view.error or "").strip().partition("\n")
            state = view.state.name.lower()
            failed = ExecutionFailed(f"execution {self.id} of {view.handler} ended {state}: {reason or 'no reason'}")
            if trace:
                failed.add_note(f"Where it failed:\n{trace}")
            raise failed
        codec = self._codec or _any_codec(view.handler)
        return cast("R_co", codec.decode_result(view.result))

    async def state(self) -> ExecutionState:
        """Return where it stands.

        Raises:
            NotFound: there is no such execution.
        """
        return await self._home.call(lambda client: client.state(self.key))

    async def cancel(self) -> ExecutionState:
        """Ask for its end; return where it stands afterwards. One that has ended stays as it is.

        What is not due yet is cancelled when this returns; what is due or runs ends when its executor hears of it.

        Raises:
            NotFound: there is no such execution.
        """
        (state,) = await self._home.call(lambda client: executions.cancel(client.store, [self.key]))
        return state

    async def view(self) -> ExecutionView:
        """Return all that is recorded of it, attempts included.

        Raises:
            NotFound: there is no such execution.
        """
        return await self._home.call(lambda client: executions.find_execution(client.store, self.key))

    result_sync = twin(result)
    state_sync = twin(state)
    cancel_sync = twin(cancel)
    view_sync = twin(view)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"


def _any_codec(handler: str) -> CallCodec:
    def untyped(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - stands for a handler that is not known here
        return args, kwargs

    return CallCodec(handler, untyped)
