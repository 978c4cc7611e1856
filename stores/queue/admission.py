"""Admission of items: refuses an item that cannot be stored or could not be found again; the same on every engine.

SQLite ends a text at a NUL in some of its functions, PostgreSQL stores none, and Redis stores any. No name and no key
may have a NUL, so that every engine refuses the same items.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ...model.errors import InvalidPayload, InvalidRequest
from ...model.name import check_not_reserved
from ...model.tenant_key import KeyRule
from .items import HIGHEST, Reschedule
from .queue import NewItem

#: Prefix under which a submission's own id is kept among the dedupe keys. Dedupe keys of users may not begin with it.
SUBMISSION_PREFIX = "submission:"
#: The latest time that is accepted, seconds since 1970: the end of the year 9999.
_LATEST = 253_402_300_800.0
#: A fault of a text, for messages.
HALF_A_CHARACTER = "half a character (a lone surrogate)"
#: Bytes of a name or key that every engine can index.
LONGEST_KEY = 2000


def dedupe_name(item: NewItem, rule: KeyRule) -> str:
    """The dedupe key of an item as it is kept: its tenant's own, but for tokens of submissions, which are drawn at
    random."""
    key = item.dedupe_key
    return key if key.startswith(SUBMISSION_PREFIX) else rule(item.kind.tenant, key)


def check(items: Sequence[NewItem], max_payload: int, *, own: bool = False) -> None:
    """Checks a batch. Raises InvalidPayload or InvalidRequest for the first item that cannot be stored or found again
    because of its payload, a time, a name, a key or a header, and for one of the platform's own functions unless the
    platform stores it (`own`): so the name of such a function says that a store made its items."""
    kind = None
    for index, item in enumerate(items):
        if len(item.payload) > max_payload:
            raise InvalidPayload(
                f"workload {index} for {item.kind.function!r}: its payload has {len(item.payload)} bytes, at most "
                f"{max_payload} are allowed; store it elsewhere and submit a reference"
            )
        if item.due or item.expires_at:
            _check_moment(index, item, "due", item.due)
            _check_moment(index, item, "expires_at", item.expires_at)
        if item.kind is not kind:  # most batches have one kind
            kind = item.kind
            if not own:
                check_not_reserved(f"workload {index}: function", kind.function)
            _check_text(index, item, "function", kind.function)
            _check_text(index, item, "collection", kind.collection)
            _check_text(index, item, "tenant", kind.tenant)
        both = item.key + item.dedupe_key
        if both and not (len(both) <= LONGEST_KEY and both.isascii() and "\0" not in both):
            _check_text(index, item, "key", item.key)
            _check_text(index, item, "dedupe_key", item.dedupe_key)
        if item.headers and not _is_text("".join(itertools.chain.from_iterable(item.headers))):
            raise _refusal(index, item, "header", HALF_A_CHARACTER)


def check_changes(changes: Sequence[Reschedule]) -> None:
    """Checks changes of waiting items. Raises InvalidRequest for a due time that is not a time, and for a priority that
    no index can hold."""
    for id, due, priority in changes:
        if due is not None and not (math.isfinite(due) and 0 <= due < _LATEST):
            raise InvalidRequest(f"workload {id!r:.40}: due is {due}: expected seconds since 1970")
        if priority is not None and not 0 <= priority <= HIGHEST:
            raise InvalidRequest(f"workload {id!r:.40}: its priority is {priority}: expected 0 to {HIGHEST}")


def _check_moment(index: int, item: NewItem, name: str, moment: float) -> None:
    if moment and not (math.isfinite(moment) and 0 < moment < _LATEST):
        raise InvalidRequest(
            f"workload {index} for {item.kind.function!r}: {name} is {moment}: expected seconds since 1970"
        )


def _check_text(index: int, item: NewItem, name: str, text: str) -> None:
    if "\0" in text:
        raise _refusal(index, item, name, "a NUL")
    if not _is_text(text):
        raise _refusal(index, item, name, HALF_A_CHARACTER)
    if len(text) * 4 > LONGEST_KEY and len(text.encode()) > LONGEST_KEY:
        raise _refusal(index, item, name, f"more than {LONGEST_KEY} bytes")


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refusal(index: int, item: NewItem, name: str, what: str) -> InvalidRequest:
    text = (
        f"workload {index} for {item.kind.function!r:.200}: its {name} has {what}: use another {name}, such as a hash "
        "of it"
    )
    return InvalidRequest(text)
