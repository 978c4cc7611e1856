"""Bounds of a search: THE rule of how far one page of it goes, the same on every engine.

There is no index of ended workloads by function or tenant: it would cost a write for every submission and every end,
for a rare question. Ids rise with time, so a search goes along them, newest first, and a page ends at its limit or at
the bound of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...model.errors import InvalidRequest
from ...model.search import MOST_FOUND, Search
from ...model.tenant_key import KeyRule
from ...model.workload import Kind
from .ids import first_id, id_number

#: Most rows that one page reads, so that it ends soon.
LOOK = 20_000
LAST_ID = (1 << 63) - 1
#: Most tenants whose keys one search without a tenant looks through.
MOST_TENANTS = 10_000


class IdSpan(NamedTuple):
    """A range of ids: from `lowest` on, and below `before`."""

    lowest: int
    before: int


def span(search: Search) -> IdSpan:
    """The ids that the next page looks at. Raises InvalidRequest for a search that is not valid."""
    if not 1 <= search.limit <= MOST_FOUND:
        raise InvalidRequest(f"a page of {search.limit} workloads: expected 1 to {MOST_FOUND}")
    if not (0 <= search.since < 1e11 and 0 <= search.until < 1e11):
        raise InvalidRequest("since, until: expected wall clock seconds since 1970")
    before = first_id(int(search.until * 1000)) if search.until else LAST_ID
    if search.after:
        after = id_number(search.after)
        if after < 0:
            raise InvalidRequest(f"after is {search.after!r:.40}: expected the id at which the page before ended")
        before = min(before, after)
    return IdSpan(first_id(int(search.since * 1000)) if search.since else 0, min(before, LAST_ID))


def kinds_of(search: Search, kinds: Mapping[int, Kind]) -> list[int] | None:
    """The numbers of the kinds that match; None: all of them."""
    if not search.function and not search.tenant:
        return None
    return [
        number
        for number, kind in kinds.items()
        if search.function in ("", kind.function) and search.tenant in ("", kind.tenant)
    ]


def keys_of(search: Search, kinds: Mapping[int, Kind], rule: KeyRule) -> list[str]:
    """The searched key as it is kept: that of the searched tenant, or of every one. Raises InvalidRequest for too many
    tenants."""
    if not search.key:
        return []
    if search.tenant:
        return [rule(search.tenant, search.key)]
    tenants = {kind.tenant for kind in [*kinds.values()]}
    if len(tenants) > MOST_TENANTS:
        raise InvalidRequest(
            f"a key of one of {len(tenants)} tenants: name the tenant (at most {MOST_TENANTS} are tried)"
        )
    return [*dict.fromkeys(rule(tenant, search.key) for tenant in ["", *sorted(tenants)])]
