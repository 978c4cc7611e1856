"""The number of threads through which gRPC passes a message.

With gRPC's event engine a message passes three threads between the socket and the event loop: one that polls, one of a
pool that reads, and the one that asyncio waits for. Without it the last of them does all three. For the small frames of
one item that halves the context switches of a round trip, and takes a quarter of its time (grpcio 1.85).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os

#: The versions of grpcio that this was measured with. The switches are experiments with names that another version may
#: not know, and then reports on standard error: so other versions are left as they are.
MEASURED = ("1.85.",)

_VARIABLE = "GRPC_EXPERIMENTS"
_CHOICE = "-event_engine_client,-event_engine_listener"


def few_threads() -> None:
    """Loads gRPC so that few threads carry a message, for the whole process; to be called before gRPC is imported. A
    `GRPC_EXPERIMENTS` that is set already stays. Processes that this one starts do not find the variable set."""
    if _VARIABLE in os.environ or not _version().startswith(MEASURED):
        return
    os.environ[_VARIABLE] = _CHOICE
    try:
        importlib.import_module("grpc.aio")  # reads the variable once
    finally:
        del os.environ[_VARIABLE]


def _version() -> str:
    return importlib.metadata.version("grpcio")
