"""A process whose own code finds no memory ends, rather than losing the end of an item; and notes outlive it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tailrace.runtime import memory
from tailrace.runtime.board import Board


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[asyncio.AbstractEventLoop, list[str]]]:
    """A loop that is watched, and a list of how it ended."""
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(threading, "__excepthook__", lambda failure: None)
    loop = asyncio.new_event_loop()
    ended: list[str] = []
    memory.end_when_exhausted(loop, {"ours"}, lambda: ended.append("end"))
    loop.default_exception_handler = lambda context: None  # type: ignore[method-assign]
    yield loop, ended
    loop.close()


def fail(error: type[Exception]) -> None:
    raise error


@pytest.mark.parametrize(("error", "expected"), [(MemoryError, ["end"]), (ValueError, [])])
def test_a_callback_without_memory_ends_the_process(
    guarded: tuple[asyncio.AbstractEventLoop, list[str]], error: type[Exception], expected: list[str]
) -> None:
    loop, ends = guarded
    loop.call_soon(fail, error)
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert ends == expected


@pytest.mark.parametrize(("name", "expected"), [("ours", ["end"]), ("the function's", [])])
def test_a_thread_of_the_executor_without_memory_ends_the_process(
    guarded: tuple[asyncio.AbstractEventLoop, list[str]], name: str, expected: list[str]
) -> None:
    _, ends = guarded
    thread = threading.Thread(target=fail, args=(MemoryError,), name=name)
    thread.start()
    thread.join()
    assert ends == expected


def test_the_last_note_is_on_the_board_with_its_item() -> None:
    board = Board.create(2)
    assert board.last_note() == (0, "")
    board.cells[2] = 7
    board.write_note(7, "a long first note")
    board.write_note(7, "ü" * 1024)
    assert board.last_note() == (7, "ü" * 1024)
    board.write_note(8, "short")
    assert (board.last_note(), board.running()) == ((8, "short"), {7})
    board.close()
