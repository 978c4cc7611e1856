"""Headers whose names are not UTF-8, read by kafka-python.

The library decodes names strictly, and a record that it cannot read stops its partition for good. So such a record is
read once more, with the bytes that are not UTF-8 written as \\xNN, as in values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka.record.default_records import DefaultRecordBatch


class _LenientSlice(bytearray):
    """Bytes that decode to a text whatever they are."""

    def decode(self, encoding: str = "utf-8", errors: str = "backslashreplace") -> str:
        return super().decode(encoding, "backslashreplace")


class _LenientBatch(bytearray):
    """A batch whose slices are lenient."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return _LenientSlice(found) if isinstance(key, slice) else found


def _reading_all(read: Callable[..., Any]) -> Callable[..., Any]:
    def read_record(batch: Any, *arguments: Any) -> Any:
        try:
            return read(batch, *arguments)
        except UnicodeDecodeError:  # before it moved on behind the record
            plain, batch._buffer = batch._buffer, _LenientBatch(batch._buffer)
            try:
                return read(batch, *arguments)
            finally:
                batch._buffer = plain

    read_record.reads_all = True  # type: ignore[attr-defined]
    return read_record


def read_all_names() -> None:
    """Has kafka-python read records whatever the names of their headers are. Harmless when repeated."""
    if not hasattr(DefaultRecordBatch._read_msg, "reads_all"):
        DefaultRecordBatch._read_msg = _reading_all(DefaultRecordBatch._read_msg)
