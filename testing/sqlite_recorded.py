"""A disk whose power may be cut at any moment, for all SQLite files that this process writes.

SQLite does its input and output through a VFS, a table of C functions. Here a copy of the usual one becomes the
default: it passes everything on and notes each write, truncation, sync and deletion. From the notes a folder is made as
a power cut would leave it: what was synced is there; of what was written since, each 512 bytes are there or not, by
chance.
"""

from __future__ import annotations

import ctypes
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self

SECTOR = 512
_INT, _PTR, _WIDE = ctypes.c_int, ctypes.c_void_p, ctypes.c_int64
# Names are handed on as they are: SQLite keeps them, and what stands behind their ends.
_OPEN = ctypes.CFUNCTYPE(_INT, _PTR, _PTR, _PTR, _INT, _PTR)
_DELETE = ctypes.CFUNCTYPE(_INT, _PTR, _PTR, _INT)
_CLOSE = ctypes.CFUNCTYPE(_INT, _PTR)
_WRITE = ctypes.CFUNCTYPE(_INT, _PTR, _PTR, _INT, _WIDE)
_TRUNCATE = ctypes.CFUNCTYPE(_INT, _PTR, _WIDE)
_SYNC = ctypes.CFUNCTYPE(_INT, _PTR, _INT)


class NoShim(Exception):
    """The SQLite of this Python cannot be reached: it has the library within itself."""


class _Vfs(ctypes.Structure):
    _fields_: ClassVar = [
        *(("version", _INT), ("file_size", _INT), ("longest", _INT), ("next", _PTR), ("name", ctypes.c_char_p)),
        *(("data", _PTR), ("open", _PTR), ("delete", _PTR)),
        *((f"other_{number}", _PTR) for number in range(14)),
    ]


class _Methods(ctypes.Structure):
    _fields_: ClassVar = [
        *(("version", _INT), ("close", _PTR), ("read", _PTR), ("write", _PTR), ("truncate", _PTR), ("sync", _PTR)),
        *((f"other_{number}", _PTR) for number in range(13)),
    ]


class OperationKind(IntEnum):
    """Kinds of operations on a file."""

    WRITE = 0
    TRUNCATE = 1
    SYNC = 2
    DELETE = 3


class DiskOperation(NamedTuple):
    """One operation on a file. `at`: the offset of a write, or the new size of a truncation."""

    what: OperationKind
    name: str
    at: int = 0
    data: bytes = b""


class RecordedDisk:
    """Recorder of the operations on SQLite files right in a folder that are opened while this context lasts. One at a
    time. Entering raises NoShim where that cannot be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.deeds: list[DiskOperation] = []
        self._lock = threading.Lock()
        self._names: dict[int, str] = {}

    def __enter__(self) -> Self:
        _shim().recorder = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _shim().recorder = None

    def opened(self, file: int, path: bytes | None) -> None:
        """Notes that SQLite opened a file, or made an unnamed one."""
        self._names.pop(file, None)
        if path and Path(path.decode()).parent == self.folder:
            self._names[file] = Path(path.decode()).name

    def did(self, file: int, what: OperationKind, at: int = 0, data: bytes = b"") -> None:
        """Notes an operation on an open file that worked."""
        if name := self._names.get(file):
            with self._lock:
                self.deeds.append(DiskOperation(what, name, at, data))

    def deleted(self, path: bytes) -> None:
        """Notes that SQLite deleted a file."""
        if Path(path.decode()).parent == self.folder:
            with self._lock:
                self.deeds.append(DiskOperation(OperationKind.DELETE, Path(path.decode()).name))

    def cut(self, after: int, chance: random.Random, into: Path) -> None:
        """Writes the files as they would be found, had the power been cut after so many operations."""
        into.mkdir()
        for name, content in found(self.deeds[:after], chance).items():
            (into / name).write_bytes(content)


def found(deeds: list[DiskOperation], chance: random.Random) -> dict[str, bytes]:
    """The content of each file after these operations: synced bytes are sure, each other sector is there or not by
    chance."""
    sure: dict[str, bytearray] = {}
    since: dict[str, list[DiskOperation]] = {}
    for deed in deeds:
        if deed.what is OperationKind.SYNC:
            content = sure.setdefault(deed.name, bytearray())
            for each in since.pop(deed.name, ()):
                _apply(content, each)
        elif deed.what is OperationKind.DELETE:  # SQLite syncs the folder where it matters
            sure.pop(deed.name, None)
            since.pop(deed.name, None)
        else:
            since.setdefault(deed.name, []).append(deed)
    for name, pending in since.items():
        if name not in sure and chance.random() < 0.5:
            continue  # not even its name was on the disk
        content = sure.setdefault(name, bytearray())
        share = chance.choice((0.0, 0.5, 1.0))
        for deed in pending:
            for part in _sectors(deed):
                if chance.random() < share:
                    _apply(content, part)
    return {name: bytes(content) for name, content in sure.items()}


def _sectors(deed: DiskOperation) -> Iterator[DiskOperation]:
    """The pieces of a deed, each of which a disk may have or lack."""
    if deed.what is not OperationKind.WRITE:
        yield deed
        return
    first, end = deed.at, deed.at + len(deed.data)
    while first < end:
        last = min(end, (first // SECTOR + 1) * SECTOR)
        yield DiskOperation(OperationKind.WRITE, deed.name, first, deed.data[first - deed.at : last - deed.at])
        first = last


def _apply(content: bytearray, deed: DiskOperation) -> None:
    if deed.what is OperationKind.TRUNCATE:
        del content[deed.at :]
        return
    if len(content) < deed.at:
        content.extend(bytes(deed.at - len(content)))
    content[deed.at : deed.at + len(deed.data)] = deed.data


class _Shim:
    """The VFS in front of the usual one. It is the default from its making to the end of the process: files that were
    opened through it may outlive the caller that asked for it."""

    def __init__(self) -> None:
        self.recorder: RecordedDisk | None = None
        self._kept: list[Any] = []  # what C holds pointers to
        self._patched: dict[int, _Methods] = {}
        library = ctypes.CDLL(_library())
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
        library.sqlite3_vfs_register.argtypes = [ctypes.POINTER(_Vfs), _INT]
        usual = library.sqlite3_vfs_find(None)
        self._vfs = _Vfs.from_buffer_copy(usual.contents)
        self._vfs.name = b"tailrace-recorded"
        self._vfs.next = None
        self._open, self._delete = _OPEN(self._vfs.open), _DELETE(self._vfs.delete)
        self._vfs.open = self._pointer(_OPEN(self._on_open))
        self._vfs.delete = self._pointer(_DELETE(self._on_delete))
        if library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1):
            raise NoShim("SQLite took no other VFS")

    def _pointer(self, function: Any) -> int | None:
        self._kept.append(function)
        return ctypes.cast(function, _PTR).value

    def _on_open(self, vfs: int, path: int | None, file: int, flags: int, got: int) -> int:
        answer = int(self._open(vfs, path, file, flags, got))
        methods = _PTR.from_address(file)
        if answer == sqlite3.SQLITE_OK and self.recorder is not None and methods.value:
            self.recorder.opened(file, ctypes.string_at(path) if path else None)
            methods.value = ctypes.addressof(self._noting(methods.value))
        return answer

    def _on_delete(self, vfs: int, path: int, sync: int) -> int:
        answer = int(self._delete(vfs, path, sync))
        if answer == sqlite3.SQLITE_OK and self.recorder is not None:
            self.recorder.deleted(ctypes.string_at(path))
        return answer

    def _noting(self, address: int) -> _Methods:
        """A copy of a file's methods in which calls that change the file are noted."""
        if address in self._patched:
            return self._patched[address]
        methods = _Methods.from_buffer_copy(_Methods.from_address(address))
        close, write = _CLOSE(methods.close), _WRITE(methods.write)
        truncate, sync = _TRUNCATE(methods.truncate), _SYNC(methods.sync)

        def told(answer: int, tell: Callable[[RecordedDisk], None]) -> int:
            if answer == sqlite3.SQLITE_OK and self.recorder is not None:
                tell(self.recorder)
            return answer

        def on_write(file: int, data: int, size: int, at: int) -> int:
            text = ctypes.string_at(data, size)
            return told(write(file, data, size, at), lambda to: to.did(file, OperationKind.WRITE, at, text))

        def on_truncate(file: int, size: int) -> int:
            return told(truncate(file, size), lambda to: to.did(file, OperationKind.TRUNCATE, size))

        def on_sync(file: int, flags: int) -> int:
            return told(sync(file, flags), lambda to: to.did(file, OperationKind.SYNC))

        methods.close = self._pointer(_CLOSE(lambda file: told(close(file), lambda to: to.opened(file, None))))
        methods.write = self._pointer(_WRITE(on_write))
        methods.truncate = self._pointer(_TRUNCATE(on_truncate))
        methods.sync = self._pointer(_SYNC(on_sync))
        self._patched[address] = methods
        return methods


_the_shim: list[_Shim] = []


def _shim() -> _Shim:
    if not _the_shim:
        _the_shim.append(_Shim())
    return _the_shim[0]


def _library() -> str:
    """The path of the SQLite library that Python's own module has loaded."""
    sqlite3.connect(":memory:").close()
    try:
        for line in Path("/proc/self/maps").read_text().splitlines():
            if "/libsqlite3.so" in line:
                return line.split(maxsplit=5)[5]
    except OSError:
        pass
    raise NoShim("this Python's SQLite is not a library of its own that /proc/self/maps names")
