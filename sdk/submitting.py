"""Submissions of a client to a gateway, as steps of a conversation (`talk`, the client's).

A gateway may have heard a call that it did not answer, so every workload carries a token (its dedupe key, else a
submission id) by which the queue recognises a repeat, whichever gateway brings it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..model.errors import PartlySubmitted
from ..wire.gateway_messages import Accepted, accepted
from ..wire.v1 import gateway_pb2 as pb
from .call import Call
from .chunks import Ahead, chunks, message
from .conversation import Conversation, Steps

T = TypeVar("T")


def submit(talk: Conversation, call: Call) -> Steps[Accepted]:
    """Submits one call."""
    return (yield from together(talk, [call], [new_token()]))[0]


def new_token() -> str:
    """Makes the token of one submission, which keeps it however often it is sent."""
    return uuid.uuid4().hex


def together(talk: Conversation, calls: Sequence[Call], tokens: Sequence[str]) -> Steps[list[Accepted]]:
    """Submits a few calls, each under its token; all are stored, or none."""
    workloads = [message(call, token) for call, token in zip(calls, tokens, strict=True)]
    reply = yield from talk.answered("Submit", pb.SubmitRequest(workloads=workloads), calls=calls)
    return accepted(reply)


def submit_many(
    talk: Conversation, calls: Iterable[Call], resend: bool, made: Callable[[Call, Accepted], T]
) -> Steps[list[T]]:
    """Submits calls in chunks, each stored whole or not at all; returns what `made` makes of each."""
    done: list[T] = []
    ahead = Ahead(chunks(calls), resend)
    told: tuple[list[Call], list[Accepted]] | None = None  # of the chunk before

    def tell() -> None:
        nonlocal told
        if told is not None:
            done.extend(map(made, *told))
            told = None

    def meanwhile() -> None:
        """Prepares the next chunk and reports the one before while one is stored: both take processor time."""
        ahead.prepare()
        tell()

    while True:
        try:
            if (one := ahead.next()) is None:
                tell()
                return done
            chunk, request = one
            reply = yield from talk.answered("Submit", request, again=resend, meanwhile=meanwhile, calls=chunk)
        except Exception as error:
            tell()
            if not done:
                raise
            raise PartlySubmitted(
                f"the first {len(done)} workloads were accepted; none of the others is known to be: {error}", done
            ) from error
        tell()
        told = chunk, accepted(reply)
