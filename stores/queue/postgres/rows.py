"""Items as arguments of a statement in PostgreSQL: each column is one array."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ....model.tenant_key import KeyRule, tenant_key
from ....model.workload import Headers
from ...postgres.arrays import blobs, numbers, texts
from ..admission import dedupe_name
from ..kinds import Kinds
from ..queue import NewItem

#: Flags of a task; `stores/postgres/migrations/` has the same numbers.
HAS_EXTRA = 1  # key, headers, expiry or progress in its entity
CANCEL = 2  # its holder is to be told
KEYED = 4  # in `keyed`; waits for the older ones of its key
DEDUPED = 8  # in `dedupe`
TRIED = 16  # in `tries`
JOB = 32  # is an item of a job: its headers are [], or [3] where it may fail three times, [0] or [03] in another life
TELLS = 64  # in `callbacks`

#: Next trigger of an item that waits for an older one of its key: it never becomes due by itself.
BLOCKED = (1 << 62) - 1
#: Next trigger of an item of a paused job.
PAUSED = BLOCKED + 1


#: Matches the mark that an item of a job has instead of headers: a 0 if it is redriven, and how often it may fail, if
#: that is bounded.
mark_of_job = re.compile(r"\[(0?)(\d*)\]").fullmatch

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(type=tuple[tuple[str, str], ...]).decode


def headers_of(text: str) -> Headers:
    """The headers in a row. The mark of an item of a job stands for none."""
    return _decode(text) if text and mark_of_job(text) is None else ()


class CallbackRows(NamedTuple):
    """The arguments of `queue_submit_with_callbacks` that follow those of `queue_submit`."""

    items: str
    kinds: str
    lanes: str
    prefixes: str
    suffixes: str


class NewRows(NamedTuple):
    """The arguments of `queue_submit` after the time."""

    ids: str
    lanes: str
    kinds: str
    dues: str
    sizes: str
    flags: str
    payloads: str
    tagged: str
    keys: str
    headers: str
    expires: str
    deduped: str
    dedupe_functions: str
    dedupe_keys: str


def new_rows(kinds: Kinds, ids: Sequence[int], items: Sequence[NewItem], rule: KeyRule = tenant_key) -> NewRows:
    """Items with these ids, as arguments; their kinds have numbers. `rule`: the dedupe key of a tenant as it is kept;
    of keys that order the schema has it."""
    of_items = [kinds.numbers[item.kind] for item in items]
    tagged: list[tuple[int, str, str, float]] = []
    deduped: list[tuple[int, str, str]] = []
    flags: list[int] = []
    for number, item in zip(ids, items, strict=True):
        flag = 0
        if item.key or item.headers or item.expires_at:
            flag = HAS_EXTRA | (KEYED if item.key else 0)
            headers = _encode(item.headers).decode() if item.headers else ""
            tagged.append((number, item.key, headers, item.expires_at))
        if item.dedupe_key:
            flag |= DEDUPED
            deduped.append((number, item.kind.function, dedupe_name(item, rule)))
        if item.on_done is not None:
            flag |= TELLS
        flags.append(flag)
    return NewRows(
        ids=numbers(ids),
        lanes=numbers(kinds.lane_of[kind] for kind in of_items),
        kinds=numbers(of_items),
        dues=numbers(int(item.due * 1e6) for item in items),
        sizes=numbers(len(item.payload) for item in items),
        flags=numbers(flags),
        payloads=blobs([item.payload for item in items]),
        tagged=numbers(each[0] for each in tagged),
        keys=texts([each[1] for each in tagged]),
        headers=texts([each[2] for each in tagged]),
        expires="{" + ",".join(repr(each[3]) for each in tagged) + "}",
        deduped=numbers(each[0] for each in deduped),
        dedupe_functions=texts([each[1] for each in deduped]),
        dedupe_keys=texts([each[2] for each in deduped]),
    )


def callback_rows(kinds: Kinds, ids: Sequence[int], items: Sequence[NewItem]) -> CallbackRows | None:
    """The callbacks of these items, as arguments; None: there are none. The kinds of the callbacks have numbers."""
    found = [(number, item.on_done) for number, item in zip(ids, items, strict=True) if item.on_done is not None]
    if not found:
        return None
    of_callbacks = [kinds.numbers[done.kind] for _, done in found]
    return CallbackRows(
        items=numbers(number for number, _ in found),
        kinds=numbers(of_callbacks),
        lanes=numbers(kinds.lane_of[kind] for kind in of_callbacks),
        prefixes=blobs([done.prefix for _, done in found]),
        suffixes=blobs([done.suffix for _, done in found]),
    )
