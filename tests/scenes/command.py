"""A `tailrace` command, given to a process that has the program loaded already, which forks one for it: to load it is
three quarters of a short command. Tests give theirs by commands.py. Each command of a shell runs this file, so it loads
little:

python -SEP tests/scenes/command.py ARGUMENTS    as `tailrace ARGUMENTS`; PLACE says where the process is
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

#: The socket at which commands are taken.
PLACE = "TAILRACE_TEST_COMMANDS"
#: Modules that commands load when they run, beside `tailrace.cli`.
LOADED = (
    "tailrace.cli",
    "tailrace.sdk.client",
    "tailrace.wire.operators",
    "tailrace.wire.probing",
    "tailrace.wire.scheduler",
    "tailrace.stores.schedules.timetable",
)
SIZE = struct.Struct("!I")


def give(
    place: str, arguments: list[str], environment: dict[str, str], folder: str, streams: tuple[int, int, int]
) -> socket.socket:
    """Gives a command, which reads and writes these descriptors. Its exit status comes back over the connection; when
    that is closed before, the command is killed."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place)
    asked = json.dumps([arguments, environment, folder]).encode()
    socket.send_fds(connection, [SIZE.pack(len(asked))], streams)
    connection.sendall(asked)
    return connection


def status(connection: socket.socket) -> int:
    """Waits for the exit status: negative is the signal that ended it."""
    with connection:
        return int(connection.recv(16) or b"1")


class Forking:
    """The process that commands are forked from. It ends, and they with it, when `lifeline` is closed."""

    def __init__(self, listener: socket.socket, lifeline: int) -> None:
        self._listener = listener
        self._lifeline = lifeline
        self._looks = selectors.DefaultSelector()
        for each in (listener, lifeline):
            self._looks.register(each, selectors.EVENT_READ)
        #: Commands by the descriptor that tells of their end: the process, and the connection that waits for it.
        self._running: dict[int, tuple[int, socket.socket]] = {}

    def serve(self) -> bool:
        """Returns False when it is over, and True in each process that is to be a command."""
        while True:
            for key, _ in self._looks.select():
                if key.fd == self._lifeline:
                    for pid, _ in self._running.values():
                        os.kill(pid, signal.SIGKILL)
                    return False
                if key.fileobj is self._listener:
                    if self._begin(self._listener.accept()[0]):
                        return True
                    break  # the list of the others may be of another time
                if key.fd in self._running:
                    self._end(key.fd)
                    break
                os.kill(key.data, signal.SIGKILL)  # whoever gave it has gone
                self._looks.unregister(key.fileobj)

    def _begin(self, connection: socket.socket) -> bool:
        head, streams, _, _ = socket.recv_fds(connection, SIZE.size, 3)
        arguments, environment, folder = json.loads(connection.recv(SIZE.unpack(head)[0], socket.MSG_WAITALL))
        if pid := os.fork():
            for each in streams:
                os.close(each)
            ended = os.pidfd_open(pid)
            self._running[ended] = (pid, connection)
            self._looks.register(ended, selectors.EVENT_READ)
            self._looks.register(connection, selectors.EVENT_READ, pid)
            return False
        for number, each in enumerate(streams):
            os.dup2(each, number)
            os.close(each)
        self._leave(connection)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv = ["tailrace", *arguments]
        return True

    def _leave(self, connection: socket.socket) -> None:
        """Lets go of all that is not the command's."""
        self._looks.close()
        os.close(self._lifeline)
        for ended in self._running:
            os.close(ended)
        for each in (self._listener, connection, *(other for _, other in self._running.values())):
            each.close()
        self._running.clear()

    def _end(self, ended: int) -> None:
        pid, connection = self._running.pop(ended)
        self._looks.unregister(ended)
        os.close(ended)
        if connection in self._looks.get_map():
            self._looks.unregister(connection)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with connection, suppress(OSError):
            connection.sendall(str(code).encode())


def _forking(listener: socket.socket, lifeline: int) -> None:
    import gc
    from importlib import import_module

    os.environ["GRPC_VERBOSITY"] = "NONE"  # as the command itself would, before it loads gRPC
    for name in LOADED:
        import_module(name)
    gc.freeze()
    if Forking(listener, lifeline).serve():
        import_module("tailrace.cli").main()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--forking"]:
        _forking(socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3]))
    else:
        sys.exit(status(give(os.environ[PLACE], sys.argv[1:], {**os.environ}, str(Path.cwd()), (0, 1, 2))))
