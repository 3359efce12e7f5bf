"""The handlers that an executor knows, by name."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from luciole import limits
from luciole.errors import AlreadyExists, InvalidValue
from luciole.model.job import RunIn
from luciole.wire.calls import CallCodec


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerOptions:
    """What a handler may choose for itself."""

    run_in: RunIn | None = None  #: None: async functions on the loop, others in a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """One function that executions call."""

    name: str
    function: Callable[..., Any]
    codec: CallCodec
    run_in: RunIn
    awaitable: bool  #: it is an async function
    path: str | None  #: "module:qualified.name", by which another process finds it; None: it can't

    def place(self, wanted: RunIn | None) -> RunIn:
        """Return where an attempt runs: as its job says where that can be, else as the handler says."""
        if wanted is RunIn.PROCESS and self.path is not None:
            return RunIn.PROCESS
        if wanted in {RunIn.ASYNC, RunIn.THREAD} and (wanted is RunIn.ASYNC) == self.awaitable:
            return wanted
        return self.run_in


class HandlerRegistry:
    """Handlers by name; filled while the user's modules are imported, read by the executor."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def add(self, name: str, function: Callable[..., Any], options: HandlerOptions | None = None) -> Handler:
        """Register a function under a name.

        Args:
            name: what jobs call it, 1 to 200 printable characters.
            function: a plain or an async function.
            options: what it chooses for itself.

        Raises:
            InvalidValue: the name, the function or an option can't be used; the message says why.
            AlreadyExists: another function has this name.
        """
        if not 0 < len(name) <= limits.NAME_LENGTH_MAX or not name.isprintable():
            raise InvalidValue(
                f"handler: {name[:80]!a} is no name; use 1 to {limits.NAME_LENGTH_MAX} printable characters"
            )
        known = self._handlers.get(name)
        if known is not None and known.function is not function:
            raise AlreadyExists(
                f"handler {name}: {_where(known.function)} has this name already; give one another name"
            )
        if known is None and len(self._handlers) >= limits.HANDLERS_MAX:
            raise InvalidValue(f"handler {name}: an executor knows at most {limits.HANDLERS_MAX} handlers")
        handler = _handler(name, function, options or HandlerOptions())
        self._handlers[name] = handler
        return handler

    def get(self, name: str) -> Handler | None:
        """Return the handler of a name, if there is one."""
        return self._handlers.get(name)

    def names(self) -> tuple[str, ...]:
        """Return all names, in order of registration."""
        return tuple(self._handlers)

    def check(self) -> None:
        """Refuse what can never run: called once all modules are imported, when annotations can be resolved.

        Raises:
            InvalidValue: an annotation names nothing, or a type that has no JSON form.
        """
        for handler in self._handlers.values():
            handler.codec.check()

    def processes_needed(self) -> bool:
        """Whether any handler asks to run in a process."""
        return any(handler.run_in is RunIn.PROCESS for handler in self._handlers.values())


def _handler(name: str, function: Callable[..., Any], options: HandlerOptions) -> Handler:
    inner = inspect.unwrap(function)
    if inspect.isclass(inner):
        raise InvalidValue(f"handler {name}: {_where(inner)} is a class; register a function")
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise InvalidValue(f"handler {name}: {_where(inner)} is a generator; return one result and use progress()")
    awaitable = inspect.iscoroutinefunction(inner)
    run_in = options.run_in or (RunIn.ASYNC if awaitable else RunIn.THREAD)
    if run_in is RunIn.ASYNC and not awaitable:
        raise InvalidValue(f"handler {name}: run_in='async' needs an async function; {_where(inner)} is a plain one")
    if run_in is RunIn.THREAD and awaitable:
        raise InvalidValue(f"handler {name}: run_in='thread' needs a plain function; {_where(inner)} is async")
    path = _import_path(inner)
    if run_in is RunIn.PROCESS and path is None:
        raise InvalidValue(
            f"handler {name}: run_in='process' needs a function that another process can import; "
            f"define {_where(inner)} at the top of a module"
        )
    codec = CallCodec(name, function)
    return Handler(name=name, function=function, codec=codec, run_in=run_in, awaitable=awaitable, path=path)


def _import_path(function: Callable[..., Any]) -> str | None:
    """Return "module:qualified.name", or None for what a new process would not find there."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", "<")
    if module == "__main__":
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        module = None if spec is None or spec.name.endswith("__main__") else spec.name
    return None if module is None or "<" in name else f"{module}:{name}"


def _where(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
