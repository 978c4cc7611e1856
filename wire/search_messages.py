"""Searches ↔ messages, both ways. Nothing here waits or decides."""

from __future__ import annotations

from ..model.claim import State
from ..model.errors import InvalidRequest
from ..model.search import Search
from .v1 import gateway_pb2 as pb

_STATES = {state.label: state for state in State}


def states_of(names: list[str]) -> tuple[State, ...]:
    """States by their names. Raises InvalidRequest for an unknown name."""
    for name in names:
        if name not in _STATES:
            raise InvalidRequest(f"there is no state {name!r:.50}: expected {', '.join(_STATES)}")
    return tuple(_STATES[name] for name in names)


def search_to_wire(search: Search) -> pb.FindRequest:
    """A search as a message."""
    return pb.FindRequest(
        function=search.function,
        tenant=search.tenant,
        states=[state.label for state in search.states],
        key=search.key,
        since=search.since,
        until=search.until,
        after=search.after,
        limit=search.limit,
    )


def search_from_wire(message: pb.FindRequest) -> Search:
    """The inverse of `search_to_wire`; a limit of 0 is the usual one."""
    return Search(
        function=message.function,
        tenant=message.tenant,
        states=states_of(list(message.states)),
        key=message.key,
        since=message.since,
        until=message.until,
        after=message.after,
        limit=message.limit or Search().limit,
    )
