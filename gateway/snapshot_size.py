"""The size of the control snapshot (functions, gates, quotas): all watchers get it as one message, so a change that
would make it larger than a message may be is refused; schedulers would else hear nothing any more."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..model.errors import InvalidRequest
from ..model.function_spec import FunctionSpec
from ..model.limits import Quota, Snapshot
from ..wire.channel import MAX_MESSAGE
from ..wire.gateway_messages import snapshot_to_wire

#: Bytes of functions, gates and quotas together: three quarters of a message, so that gates always find room.
MOST = MAX_MESSAGE // 4 * 3


def check_functions(known: Snapshot, specs: Collection[FunctionSpec]) -> None:
    """Raises InvalidRequest where there is no room for these functions. Known functions are not measured again."""
    named = {spec.name: spec for spec in known.functions}
    if any(named.get(spec.name) != spec for spec in specs):
        named.update({spec.name: spec for spec in specs})
        _check(known, replace(known, functions=[*named.values()]), "these functions")


def check_quotas_fit(known: Snapshot, quotas: Collection[Quota]) -> None:
    """Raises InvalidRequest where there is no room for these quotas."""
    _check(known, replace(known, quotas=[*quotas]), "these quotas")


def _check(known: Snapshot, wanted: Snapshot, what: str) -> None:
    size = snapshot_to_wire(wanted).ByteSize()
    if size > MOST and size > snapshot_to_wire(known).ByteSize():  # a change that makes it smaller is accepted
        raise InvalidRequest(
            f"with {what} all functions, gates and quotas would be {size / (1 << 20):.1f} MiB "
            f"({len(wanted.functions):,} functions with their arguments, {len(wanted.quotas):,} quotas), "
            f"and at most {MOST >> 20} MiB reach the schedulers: register fewer functions, with shorter "
            "descriptions of their arguments, or cover more with each quota (`per: tenant`)"
        )
