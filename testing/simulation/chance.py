"""Every source of chance that the platform's code uses, seeded for as long as a world lasts."""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import os
import random
import socket
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from ...foundation.logger import facts_of
from ...runtime.executors import ExecutorProcess
from ...runtime.rules.leases import LeaseGroup
from ...scheduler.roster import Able, RosterFunction
from ...scheduler.rules.placement import WorkerPool
from ...scheduler.sessions import TailerSession, WorkerSession
from ...tailers.partition import Partition
from .loop import SimFuture, SimTask

#: Classes whose objects the platform keeps in sets: such sets are walked in the order of hashes, which by default are
#: addresses in memory.
_IN_SETS: tuple[type[Any], ...] = (
    TailerSession,
    WorkerSession,
    WorkerPool,
    RosterFunction,
    Able,
    LeaseGroup,
    Partition,
    ExecutorProcess,
)


class Numbers:
    """Numbers for objects in the order in which they were first asked for; they are kept until the end."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, Any]] = {}

    def of(self, one: Any) -> int:
        """The number of an object, given when it is first asked for."""
        known = self._known.get(id(one))
        if known is None:
            known = self._known[id(one)] = (len(self._known), one)
        return known[0]


@contextlib.contextmanager
def _in_order() -> Iterator[None]:
    """Has sets of objects and of tasks walked in the same order in every process."""
    numbers = Numbers()
    changed: list[Any] = [*_IN_SETS, SimTask, SimFuture]
    former = [vars(each).get("__hash__") for each in changed]

    def number(self: Any) -> int:
        return numbers.of(self)

    for each in changed:
        each.__hash__ = number
    try:
        yield
    finally:
        for each, hashed in zip(changed, former, strict=True):
            if hashed is None:
                del each.__hash__
            else:
                each.__hash__ = hashed


@functools.cache
def _frozen_before() -> bool:
    """Whether all objects from before the first world are frozen by a program that has more to do than simulate: then
    they stay so. Asked once: every frozen object is counted for the answer, which takes as long as a short world."""
    return gc.get_freeze_count() > 0


@contextlib.contextmanager
def seeded(seed: int, said: Callable[[str], None] = lambda line: None) -> Iterator[None]:
    """Seeds module `random` and uuid4, keeps the garbage collector from choosing the moment at which something is
    closed, and sends log lines to `said`."""

    handler = _Handler(said)
    state, uuid4, collecting = random.getstate(), uuid.uuid4, gc.isenabled()
    disabled = logging.root.manager.disable
    ids = random.Random(seed)
    random.seed(seed)
    uuid.uuid4 = lambda: uuid.UUID(int=ids.getrandbits(128), version=4)
    gc.disable()
    frozen = _frozen_before()
    gc.freeze()  # the collection at the end of a world looks at that world alone
    getpid, gethostname = os.getpid, socket.gethostname
    os.getpid, socket.gethostname = (lambda: 1), (lambda: "host")
    logging.disable(logging.NOTSET)
    root = logging.getLogger("tailrace")
    propagate, root.propagate = root.propagate, False
    level = root.level
    root.setLevel(logging.DEBUG)
    root.addHandler(handler)
    try:
        with _in_order():
            yield
    finally:
        os.getpid, socket.gethostname = getpid, gethostname
        root.removeHandler(handler)
        root.propagate = propagate
        root.setLevel(level)
        random.setstate(state)
        uuid.uuid4 = uuid4
        logging.disable(disabled)
        if not frozen:
            gc.unfreeze()
        if collecting:
            gc.enable()


class _Handler(logging.Handler):
    def __init__(self, said: Callable[[str], None]) -> None:
        super().__init__()
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        facts = facts_of(record)
        if record.levelno < logging.WARNING and not facts:
            return
        error = record.exc_info[1] if record.exc_info else None
        told = "".join(f" {name}={value}" for name, value in facts.items())
        self._said(record.getMessage() + told + (f" ({error!r})" if error is not None else ""))
