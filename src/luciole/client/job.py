"""Jobs as users hold them: plain callables that can also be enqueued, typed by the handler's own signature."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, ParamSpec, TypeVar, Unpack

from luciole import limits
from luciole.client.client import Prepared
from luciole.client.handle import Handle
from luciole.client.home import Home, blocking, twin
from luciole.client.transactions import needs_loop
from luciole.errors import IllegalState, InvalidPayload, InvalidValue, StoreUnavailable
from luciole.model.execution import Enqueued
from luciole.model.job import JobSpec
from luciole.service.requests import PLAIN, RequestChoices, RequestOptions, read_request_options
from luciole.wire.calls import CallCodec

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
C_co = TypeVar("C_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCall(Generic[R_co]):
    """A job with its arguments, checked and encoded: what a schedule runs, or one of many to enqueue."""

    spec: JobSpec  #: with the payload
    codec: CallCodec


class _Enqueueing(Generic[P, R_co]):
    """What a job and a job with options have in common."""

    _home: Home
    _codec: CallCodec
    _spec: JobSpec
    _choices: RequestChoices

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R_co]:
        """Make one execution durable; it starts at once, unless options say otherwise.

        Args:
            *args: as for the handler.
            **kwargs: as for the handler.

        Returns:
            A handle on the execution. With a key that exists, on the one that it names: `created` tells.

        Raises:
            InvalidPayload: the handler can't be called so, or an argument has no JSON form.
            PayloadTooLarge: the arguments are over their limit.
            StoreUnavailable: the store can't be reached; nothing was written.
            OutcomeUnknown: the connection broke in the commit; with a key it is safe to repeat.
        """
        payload = self._codec.encode(args, kwargs)
        if self._choices.tx is not None:
            (enqueued,) = await self._in_transaction([payload])
        elif (client := self._home.here()) is not None:
            enqueued = await client.enqueue(self._spec, payload, self._choices)
        else:
            enqueued = await self._home.call(lambda client: client.enqueue(self._spec, payload, self._choices))
        return self._handle(enqueued)

    async def enqueue_many(self, calls: Iterable[Any]) -> list[Handle[R_co]]:
        """Make many executions durable, a thousand to a transaction, one round trip each, two of them at once.

        Args:
            calls: one item for each execution: the handler's only argument, or `job.bind(...)` for more than one.

        Returns:
            Handles, in order.

        Raises:
            InvalidPayload: as for `enqueue`; nothing was written.
            StoreUnavailable: the store can't be reached; earlier thousands are written, and perhaps one beside it.
        """
        if self._choices.key is not None:
            raise InvalidValue(f"{self._spec.handler}: one key can't name many executions; enqueue them one by one")
        payloads = [self._payload(call) for call in calls]
        if self._choices.tx is not None:
            answers = await self._in_transaction(payloads)
        else:
            answers = await self._home.call(lambda client: client.enqueue_many(self._spec, payloads, self._choices))
        return [self._handle(enqueued) for enqueued in answers]

    enqueue_sync = twin(enqueue)
    enqueue_many_sync = twin(enqueue_many)

    def _payload(self, call: object) -> bytes:
        if not isinstance(call, BoundCall):
            try:
                return self._codec.encode((call,), {})
            except InvalidPayload as problem:
                if isinstance(call, tuple | dict):
                    raise InvalidPayload(
                        f"{problem}; a call of several arguments is {self._spec.handler}.bind(…)"
                    ) from None
                raise
        if call.spec.handler != self._spec.handler:
            raise InvalidValue(f"{self._spec.handler}: a call of {call.spec.handler} is among its calls")
        return call.spec.payload

    async def _in_transaction(self, payloads: Sequence[bytes]) -> Sequence[Enqueued]:
        """Enqueue with the user's own connection, in the caller's thread and on its loop."""
        if blocking() and needs_loop(self._choices.tx):  # Before its connection is touched.
            raise IllegalState("tx: this connection needs an event loop; use await enqueue(…)")
        try:
            prepared: Prepared = await self._home.call(
                lambda client: client.prepare_transaction(self._spec, payloads, self._choices)
            )
        except StoreUnavailable as problem:
            # On SQLite the user's own transaction may hold the only write lock.
            raise StoreUnavailable(
                f"tx: what an enqueue needs could not be fetched beside your transaction ({problem}); "
                "call app.open() before it begins"
            ) from problem
        enqueued: list[Enqueued] = []
        for start in range(0, len(prepared.requests), limits.ENQUEUE_BATCH_MAX):
            batch = prepared.requests[start : start + limits.ENQUEUE_BATCH_MAX]
            answers = prepared.run(self._choices.tx, batch)
            enqueued += await answers if inspect.isawaitable(answers) else answers
        return enqueued

    def _handle(self, enqueued: Enqueued) -> Handle[R_co]:
        return Handle(self._home, enqueued.key, self._codec, created=enqueued.created)


class JobWithOptions(_Enqueueing[P, R_co]):
    """A job with options for the executions that it enqueues; made by `job.options(...)`."""

    def __init__(self, home: Home, codec: CallCodec, spec: JobSpec, choices: RequestChoices) -> None:
        self._home = home
        self._codec = codec
        self._spec = spec
        self._choices = choices

    def __repr__(self) -> str:
        return f"<job {self._spec.handler} with options>"


class Job(_Enqueueing[P, R_co], Generic[P, R_co, C_co]):
    """A handler with its policies; made by `@app.job`. Calling it calls the function, as if it were not decorated."""

    def __init__(self, function: Callable[P, C_co], home: Home, codec: CallCodec, spec: JobSpec) -> None:
        self.function = function
        self._home = home
        self._codec = codec
        self._spec = spec
        self._choices = PLAIN
        functools.update_wrapper(self, function)
        mark = getattr(inspect, "markcoroutinefunction", None)  # Python 3.12
        if mark is not None and inspect.iscoroutinefunction(function):
            mark(self)

    @property
    def name(self) -> str:
        """The durable name of the handler."""
        return self._spec.handler

    @property
    def spec(self) -> JobSpec:
        """The job's policies, without a payload."""
        return self._spec

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C_co:
        """Call the function, here and now."""
        return self.function(*args, **kwargs)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundCall[R_co]:
        """Return a call with these arguments, for `app.schedule` or `enqueue_many`.

        Raises:
            InvalidPayload: the handler can't be called so, or an argument has no JSON form.
            PayloadTooLarge: the arguments are over their limit.
        """
        return BoundCall(spec=replace(self._spec, payload=self._codec.encode(args, kwargs)), codec=self._codec)

    def options(self, **options: Unpack[RequestOptions]) -> JobWithOptions[P, R_co]:
        """Return the job with options for what it enqueues.

        Args:
            **options: `delay`, `at`, `priority`, `key`, `labels`, `deadline`, `tx`; see `RequestOptions`.

        Raises:
            InvalidValue: an unknown option, a wrong value, or two that exclude each other.
        """
        return JobWithOptions(self._home, self._codec, self._spec, read_request_options(self._spec.handler, options))

    def __repr__(self) -> str:
        return f"<job {self._spec.handler}>"
