"""Threads of gRPC: which of them carry a message.

With gRPC's event engine a message passes three threads between the socket and the event loop: one that polls, one of a
pool that reads, and the one that asyncio waits for. Without it the last of them does all three. For the small frames of
one item that halves the context switches of a round trip, and takes a quarter of its time (grpcio 1.85).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os

#: The versions of grpcio that it was measured with. The switches are experiments by name, of which another version
#: may not know, and says so on standard error: there gRPC stays as it is.
MEASURED = ("1.85.",)

_VARIABLE = "GRPC_EXPERIMENTS"
_CHOICE = "-event_engine_client,-event_engine_listener"


def few_threads() -> None:
    """Loads gRPC so that few threads carry a message, for the whole process; the first thing that it does with gRPC.
    Who has set `GRPC_EXPERIMENTS` has chosen. No process that this one starts finds the variable set."""
    if _VARIABLE in os.environ or not _version().startswith(MEASURED):
        return
    os.environ[_VARIABLE] = _CHOICE
    try:
        importlib.import_module("grpc.aio")  # reads the variable once
    finally:
        del os.environ[_VARIABLE]


def _version() -> str:
    return importlib.metadata.version("grpcio")
