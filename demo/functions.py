"""The work of the demo: index a Python file, then summarise it. Environment variables name the catalogue and the
journal.

Each run writes its start and its end to the journal itself, and the demo is judged by that journal.
"""

from __future__ import annotations

import ast
import gc
import http.client
import json
import os
import urllib.parse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from ..model.errors import Fatal, RetryLater, Throttled
from ..model.retry import Retry
from ..sdk.client import Client
from ..sdk.context import Context
from ..sdk.function import function
from .journal import FOLLOW_UP, INDEX, SUBMITTED, DemoJournal

CATALOGUE_VARIABLE = "TAILRACE_DEMO_CATALOGUE"
JOURNAL_VARIABLE = "TAILRACE_DEMO_JOURNAL"

#: The path of the catalogue (catalogue.py); written here again, since aiohttp is slow to import in every executor.
SYMBOLS = "/symbols"
#: Seconds for one answer of the catalogue.
TIMEOUT = 10.0
#: A failure of the catalogue is tried again after a second, then after two.
RETRY = Retry(backoff="list", delays=(1.0, 2.0), max_attempts=8)


@contextmanager
def journaled(name: str, subject: str, ctx: Context) -> Iterator[DemoJournal]:
    """Writes the start of a run, and its end with the outcome."""
    journal = DemoJournal(Path(os.environ[JOURNAL_VARIABLE]))

    def write(word: str) -> None:
        journal.write(word, name, ctx.id, ctx.fence, ctx.attempt, subject)

    write("start")
    try:
        yield journal
    except Throttled:
        write("throttled")
        raise
    except Fatal:
        write("fatal")
        raise
    except BaseException:
        write("retry")
        raise
    write("success")


@function(isolation="process", priority="user_visible", retry=RETRY)
def index(path: str, name: str, size: int, modified: float, ctx: Context) -> None:
    """Parses one Python file and posts its symbols to the catalogue."""
    with journaled(INDEX, path, ctx) as journal:
        _post(path, symbols_of(path))
        handle = _client().submit(summarise, path=path, dedupe_key=f"{FOLLOW_UP}:{path}")
        journal.write(SUBMITTED, FOLLOW_UP, handle.id, 0, 0, path)


@function(priority="reporting", retry=RETRY)
def summarise(path: str, ctx: Context) -> int:
    """Asks the catalogue for the number of symbols of a file, which every indexed file must have there."""
    with journaled(FOLLOW_UP, path, ctx):
        status, body = _ask("GET", f"{SYMBOLS}?{urllib.parse.urlencode({'path': path})}", b"")
        if status != 200:
            raise RetryLater(f"the catalogue answered {status}")
        return int(json.loads(body)["symbols"])


def symbols_of(path: str) -> list[str]:
    """The classes, functions and methods that a file declares. Raises Fatal for one that is not valid Python."""
    gc.disable()  # a tree has no cycles, and looking for some in it costs a fifth of the time
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other people's code
            tree = ast.parse(Path(path).read_bytes(), path)
    except FileNotFoundError:
        raise Fatal("the file is gone") from None
    except (SyntaxError, ValueError, RecursionError) as error:
        what = getattr(error, "msg", None) or str(error) or type(error).__name__
        raise Fatal(f"not valid Python: {what} (line {getattr(error, 'lineno', None) or '?'})") from None
    finally:
        gc.enable()
    return list(_declared(tree.body, ""))


def _declared(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from _declared(node.body, f"{prefix}{node.name}.")


def _post(path: str, symbols: list[str]) -> None:
    status, answer = _ask("POST", SYMBOLS, json.dumps({"path": path, "symbols": symbols}).encode())
    if status == 429:
        raise Throttled(downstream="catalogue", retry_after=float(answer))
    if status != 200:
        raise RetryLater(f"the catalogue answered {status}")


def _ask(method: str, target: str, body: bytes) -> tuple[int, bytes]:
    """The status and the body of an answer; in place of the body of a 429 its Retry-After."""
    connection = http.client.HTTPConnection(os.environ[CATALOGUE_VARIABLE], timeout=TIMEOUT)
    try:
        connection.request(method, target, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.read() if answer.status != 429 else (answer.headers["Retry-After"]).encode()
    finally:
        connection.close()


@cache
def _client() -> Client:
    """The client of this process, made once; it finds the gateway by TAILRACE_GATEWAY."""
    return Client()


__all__ = ["index", "summarise"]
