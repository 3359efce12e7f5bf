"""Processes of a run: each is told what to do by a line of JSON, and answers each line with one."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

import msgspec

from luciole.bench.leash import leash
from luciole.bench.verdict import InvalidRun

#: An answer may carry histograms; a line may be this long.
LINE_BYTES_MAX = 64 * 1_048_576

Message = dict[str, Any]


class Process:
    """One child: `python -m MODULE`; its standard error is ours."""

    def __init__(self, module: str, child: asyncio.subprocess.Process) -> None:
        self.module = module
        self._child = child

    @classmethod
    async def start(cls, module: str, environment: Mapping[str, str] | None = None) -> "Process":
        """Start a module of this package with this interpreter, with more in its environment."""
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES_MAX,
            env={**os.environ, **(environment or {})},
            start_new_session=True,  # Ctrl-C reaches the bench alone, which ends them in order.
            preexec_fn=leash(),
        )
        return cls(module, child)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind:
            self.kill()  # Interrupted or broken off: nobody waits for what it is at.
        await self.stop()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    async def ask(self, verb: str, **arguments: Any) -> Message:  # noqa: ANN401 - what JSON can carry
        """Tell it what to do and wait for its answer.

        Raises:
            InvalidRun: it failed or died; its own words are in the message.
        """
        assert self._child.stdin
        assert self._child.stdout
        with suppress(ConnectionError):
            self._child.stdin.write(msgspec.json.encode({"do": verb, **arguments}) + b"\n")
            await self._child.stdin.drain()
        line = await self._child.stdout.readline()
        if not line:
            code = await self._child.wait()
            raise InvalidRun(f"{self.module} died in {verb!r} (exit code {code}); its last words are above")
        answer: Message = msgspec.json.decode(line)
        if "failed" in answer:
            raise InvalidRun(f"{self.module} failed in {verb!r}: {answer['failed']}")
        return answer

    async def stop(self) -> None:
        """Close its input, which ends it; kill it when that does not."""
        if self._child.stdin:
            self._child.stdin.close()
        try:
            async with asyncio.timeout(10):
                await self._child.wait()
        except TimeoutError:
            self.kill()
            await self._child.wait()

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            self._child.kill()


async def ask_all(processes: Sequence[Process], verb: str, **arguments: Any) -> list[Message]:  # noqa: ANN401 - JSON
    """Ask several at once; return their answers in order."""
    return list(await asyncio.gather(*(process.ask(verb, **arguments) for process in processes)))


async def answer_lines(verbs: Mapping[str, Callable[..., Awaitable[Message]]]) -> None:
    """Serve the other end: call the verb of each line of standard input, until that ends.

    A verb that raises ends the process after its reason was told.
    """
    reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        message: Message = msgspec.json.decode(line)
        try:
            answer = await verbs[message.pop("do")](**message)
        except Exception as error:
            _tell({"failed": f"{type(error).__name__}: {error}"})
            raise
        _tell(answer)


def _tell(message: Message) -> None:
    sys.stdout.write(msgspec.json.encode(message).decode("utf-8") + "\n")
    sys.stdout.flush()
