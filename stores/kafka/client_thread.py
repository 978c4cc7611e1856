"""Blocking calls of a Kafka client in a thread of its own: one at a time, each for all requests that came meanwhile.

So a list crosses between the threads, never a single record, and lists grow under load.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")


class KafkaThread(Generic[T]):
    """One client object and the one thread that uses it. `make` makes the object when it is first needed, and anew
    after it was dropped; `explain` turns its errors into ours."""

    def __init__(self, name: str, make: Callable[[], T], explain: Callable[[BaseException], Exception]) -> None:
        self._name = f"kafka-{name}"
        self._make = make
        self._explain = explain
        self._object: T | None = None
        self._executor: ThreadPoolExecutor | None = None
        self._closing: asyncio.Future[None] | None = None

    async def call(self, method: Callable[[T], A]) -> A:
        """Makes a blocking call in the thread, and returns its answer. Raises the client's error as `explain` turns
        it."""
        while self._closing is not None:  # else two threads would have the one object
            await asyncio.shield(self._closing)
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix=self._name)
        loop = asyncio.get_running_loop()
        answer = loop.run_in_executor(self._executor, self._run, method)
        answer.add_done_callback(_heard)
        return await asyncio.shield(answer)

    def _run(self, method: Callable[[T], A]) -> A:
        try:
            if self._object is None:
                self._object = self._make()
            return method(self._object)
        except Exception as error:
            raise self._explain(error) from error

    def drop(self) -> None:
        """Closes the object and forgets it: the next call makes another one. To be called in the thread itself."""
        dropped, self._object = self._object, None
        if dropped is not None:
            dropped.close()  # type: ignore[attr-defined]

    async def close(self) -> None:
        """Ends the thread and closes the object, after the calls that are under way. A later call begins anew."""
        executor, self._executor = self._executor, None
        if executor is not None:
            self._closing = asyncio.get_running_loop().run_in_executor(executor, self.drop)
            self._closing.add_done_callback(self._closed)
            executor.shutdown(wait=False)
        if self._closing is not None:
            await asyncio.shield(self._closing)

    def _closed(self, closing: asyncio.Future[None]) -> None:
        self._closing = None


def _heard(answer: asyncio.Future[Any]) -> None:
    """Reads an error that nobody awaits any more, since its caller is gone, so that asyncio does not log it."""
    if not answer.cancelled():
        answer.exception()


class BatchedCalls(Generic[T, Q, A]):
    """Requests that are made together: `ask` gets a list of them, in the thread, and answers each with a value or an
    exception."""

    def __init__(self, thread: KafkaThread[T], ask: Callable[[T, Sequence[Q]], Sequence[A | BaseException]]) -> None:
        self._thread = thread
        self._ask = ask
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._running: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A:
        """The answer to one request. Raises the exception that it was answered with."""
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            questions = [question for question, _ in batch]
            try:
                answers = await self._thread.call(lambda client, asked=questions: self._ask(client, asked))  # type: ignore[misc]
            except Exception as error:
                answers = [error] * len(batch)
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.done():
                    continue  # its caller is gone
                if isinstance(answer, BaseException):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
