"""A process that runs handlers, one at a time, for the executor that started it: `python -m` this module.

It is a fresh interpreter (never a fork of one with threads), it gets nothing but names and payload bytes, and it
ends with its executor: when its standard input closes.
"""

import asyncio
import importlib
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextvars import Context as Scope
from operator import attrgetter
from queue import SimpleQueue
from typing import Any, BinaryIO

from luciole.errors import UnknownHandler
from luciole.executor.context import Context, enter
from luciole.executor.log_lines import log_to_stderr
from luciole.executor.outcome import Ended, failure, read_arguments, success
from luciole.executor.process_frames import (
    LENGTH_BYTES,
    Begin,
    Call,
    Done,
    FromProcess,
    Progress,
    Started,
    ToProcess,
    frame,
    to_process,
)
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import AttemptOutcome
from luciole.wire.calls import CallCodec

_CANCELLED = Ended(AttemptOutcome.CANCELLED, error="cancelled")


class _Reporting(Context):
    """A context whose progress travels to the executor at once."""

    __slots__ = ("_process",)

    def __init__(self, process: "_Process", call: Call) -> None:
        super().__init__(
            key=ExecutionKey(*call.key),
            attempt=call.attempt,
            handler=call.name,
            fire_us=call.fire_us,
            due_us=call.due_us,
            deadline_us=call.deadline_us,
        )
        self._process = process

    def progress(self, value: str | float) -> None:
        super().progress(value)
        self._process.send(Progress(self.latest_progress or ""))


class _Process:
    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._sending = threading.Lock()
        self._calls: SimpleQueue[Call] = SimpleQueue()
        self._context: Context | None = None
        self._codecs: dict[str, CallCodec] = {}

    def serve(self) -> None:
        """Run calls until the process ends."""
        threading.Thread(target=self._read, name="luciole-executor-link", daemon=True).start()
        self.send(Started())
        while True:
            self.send(Scope().run(self._run, self._calls.get()))

    def send(self, message: FromProcess) -> None:
        """Write one frame, from any thread."""
        with self._sending:
            self._outgoing.write(frame(message))
            self._outgoing.flush()

    def _read(self) -> None:
        while (message := self._next()) is not None:
            if isinstance(message, Begin):
                sys.path[:] = message.path
                log_to_stderr(message.log_level)
            elif isinstance(message, Call):
                self._calls.put(message)
            elif (context := self._context) is not None:
                context.tell()
        os._exit(0)  # The executor is gone: whatever runs here, nobody would hear of it.

    def _next(self) -> ToProcess | None:
        head = self._incoming.read(LENGTH_BYTES)
        return to_process.decode(self._incoming.read(int.from_bytes(head, "big"))) if head else None

    def _run(self, call: Call) -> Done:
        context = self._context = _Reporting(self, call)
        enter(context)
        try:
            codec = self._codecs.get(call.function)
            if codec is None:
                codec = self._codecs[call.function] = CallCodec(call.name, _find(call.function))
            args, kwargs = read_arguments(codec, call.payload, call.content_type)
            self.send(Started())
            result = codec.function(*args, **kwargs)
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
            ended = success(codec, result)
        except BaseException as problem:  # noqa: BLE001 - whatever it raises, the execution's state moves on
            ended = failure(problem, _CANCELLED if context.cancelled else None)
        self._context = None
        return Done(ended.outcome, ended.result, ended.error, ended.retry_after_us, ended.retryable)


def _find(path: str) -> Callable[..., Any]:
    """Return the function of a path, as it was before it was registered.

    Raises:
        UnknownHandler: its module has no such name.
    """
    module, _, name = path.partition(":")
    try:
        found = attrgetter(name)(importlib.import_module(module))
    except AttributeError:
        raise UnknownHandler(f"{module} has no {name}; a handler that runs in a process is found by its name") from None
    function: Callable[..., Any] = inspect.unwrap(found)
    return function


def main() -> None:
    """Serve on what were standard input and output; handlers print to standard error instead."""
    incoming = os.fdopen(os.dup(0), "rb")
    outgoing = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    # The executor ends this process, after its handlers: a signal to the whole group is none of its business. (Not
    # SIG_IGN, which programs that a handler starts would inherit.)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    _Process(incoming, outgoing).serve()


if __name__ == "__main__":
    main()
