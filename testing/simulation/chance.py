"""Every source of chance that the platform's code uses, seeded for as long as a world lasts."""

from __future__ import annotations

import contextlib
import gc
import logging
import random
import uuid
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import structlog


@contextlib.contextmanager
def seeded(seed: int, said: Callable[[str], None] = lambda line: None) -> Iterator[None]:
    """Module `random` and uuid4 follow from the seed; the garbage collector does not choose the moment at which
    something is closed; what is logged goes to `said`."""

    def tell(logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        said(" ".join(f"{name}={value}" if name != "event" else str(value) for name, value in event.items()))
        raise structlog.DropEvent

    handler = _Handler(said)
    former = structlog.get_config()
    structlog.configure(processors=[tell], cache_logger_on_first_use=False)
    state, uuid4, collecting = random.getstate(), uuid.uuid4, gc.isenabled()
    disabled = logging.root.manager.disable
    ids = random.Random(seed)
    random.seed(seed)
    uuid.uuid4 = lambda: uuid.UUID(int=ids.getrandbits(128), version=4)
    gc.disable()
    logging.disable(logging.NOTSET)
    root = logging.getLogger("tailrace")
    propagate, root.propagate = root.propagate, False
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.propagate = propagate
        structlog.configure(**former)
        random.setstate(state)
        uuid.uuid4 = uuid4
        logging.disable(disabled)
        if collecting:
            gc.enable()


class _Handler(logging.Handler):
    def __init__(self, said: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._said(record.getMessage() + (f" ({error!r})" if error is not None else ""))
