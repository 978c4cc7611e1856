"""Calls of operators to a gateway, Python to Python: server and client half of the ports (interfaces) in `wire/ports`.

All else that a gateway answers is protobuf, for other languages (gateway.py).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import grpc

from ..foundation.identity import whoami
from ..model.gate import Gate
from ..model.replay import ReplayOrder
from ..model.seek import ForgetTailer, Move, Seek
from .asker import asking
from .channel import dial, error_of
from .named_fields import named
from .ports.acts import ActPort
from .ports.files import FilePort
from .ports.jobs import JobAuditPort, JobPagePort, JobPort
from .ports.letters import LetterPort
from .ports.limits import LimitPort
from .ports.overview import OverviewPort
from .ports.replays import ReplayPort, ReplayView
from .ports.tailers import TailerPort
from .ports.tokens import MadeToken, TokenOrder, TokenPort
from .ports.usage import UsagePort
from .stores import Signature, StoreCall, StoresService, call_of, methods, remote
from .v1.stores_pb2_grpc import OperatorsStub, add_OperatorsServicer_to_server

#: Each port by its name on the wire. No two have a method of one name: one client has them all.
PORTS: dict[str, type[Any]] = {
    "acts": ActPort,
    "files": FilePort,
    "job_audits": JobAuditPort,
    "job_pages": JobPagePort,
    "jobs": JobPort,
    "letters": LetterPort,
    "limits": LimitPort,
    "overview": OverviewPort,
    "replays": ReplayPort,
    "tailers": TailerPort,
    "tokens": TokenPort,
    "usage": UsagePort,
}
_PORT_OF = {name: port for port, protocol in PORTS.items() for name in methods(protocol)}

#: Seconds for a call, and for calls that wait for a former owner's lease, search by time, or move many letters.
CALL_TIMEOUT = 10.0
LONGER = {
    "audit": 120.0,
    "seek_tailer": 120.0,
    "forget_tailer": 120.0,
    "start_replay": 120.0,
    "redrive": 60.0,
    "purge": 60.0,
    "retry_job": 60.0,
    "reload": 120.0,
    "usage": 60.0,
}


def register(
    desks: Mapping[str, object], through: Callable[[StoreCall], Coroutine[Any, Any, Any]] | None = None
) -> Callable[[grpc.aio.Server], None]:
    """Makes the function by which `channel.serve` registers these ports. `desks` has the object that answers each, by
    its name; `through` makes each call, or refuses it."""
    service = StoresService({name: (protocol, desks[name]) for name, protocol in PORTS.items()}, named, through)
    return lambda server: add_OperatorsServicer_to_server(service, server)  # type: ignore[no-untyped-call]


class OperatorClient:
    """The client of every port: one call, one answer or error, no second try. An async context manager.

    timeout  seconds for each call; default: CALL_TIMEOUT, or what LONGER has for it
    reason   why this address is asked, for the message that it does not answer

    An operator who gives no name is user@host.
    """

    def __init__(self, address: str, timeout: float | None = None, reason: str = "") -> None:
        self.address = address
        self._reason = reason
        self._timeout = timeout
        self._channel = dial(address)
        self._invoke: Any = OperatorsStub(self._channel).Call  # type: ignore[no-untyped-call]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the channel."""
        await self._channel.close()

    async def invoke(self, signature: Signature, arguments: Any) -> Any:
        """Makes one call of a port. Raises the gateway's own error, or Unavailable."""
        request = call_of(_PORT_OF[signature.name], signature, arguments)
        try:
            timeout = self._timeout or LONGER.get(signature.name, CALL_TIMEOUT)
            reply = await self._invoke(request, timeout=timeout, metadata=asking())
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self.address, self._reason) from None
        return signature.decode_result(reply.value)

    acts = remote(ActPort.acts, named)

    reload = remote(FilePort.reload, named)

    jobs = remote(JobPort.jobs, named)
    job = remote(JobPort.job, named)
    job_page = remote(JobPagePort.job_page, named)
    job_results = remote(JobPort.job_results, named)
    change_job = remote(JobPort.change_job, named)
    retry_job = remote(JobPort.retry_job, named)
    audit_job = remote(JobAuditPort.audit_job, named)

    dead_letters = remote(LetterPort.dead_letters, named)
    dead_letter = remote(LetterPort.dead_letter, named)
    count_dead = remote(LetterPort.count_dead, named)
    redrive = remote(LetterPort.redrive, named)
    purge = remote(LetterPort.purge, named)

    set_quota = remote(LimitPort.set_quota, named)
    apply_quotas = remote(LimitPort.apply_quotas, named)
    quota_changes = remote(LimitPort.quota_changes, named)
    limits_in_force = remote(LimitPort.limits_in_force, named)
    _set_gate = remote(LimitPort.set_gate, named)

    overview = remote(OverviewPort.overview, named)
    tell_failure = remote(OverviewPort.tell_failure, named)
    tell_start_delays = remote(OverviewPort.tell_start_delays, named)

    replays = remote(ReplayPort.replays, named)
    change_replay = remote(ReplayPort.change_replay, named)
    _start_replay = remote(ReplayPort.start_replay, named)

    _pause_tailer = remote(TailerPort.pause_tailer, named)
    audit = remote(TailerPort.audit, named)
    drops = remote(TailerPort.drops, named)
    _seek_tailer = remote(TailerPort.seek_tailer, named)
    _forget_tailer = remote(TailerPort.forget_tailer, named)

    _create_token = remote(TokenPort.create_token, named)
    tokens = remote(TokenPort.tokens, named)
    revoke_token = remote(TokenPort.revoke_token, named)

    tell_usage = remote(UsagePort.tell_usage, named)
    usage = remote(UsagePort.usage, named)

    async def set_gate(self, gate: Gate) -> int:
        """Sets a gate; action `resume` removes it."""
        return await self._set_gate(gate if gate.who else replace(gate, who=whoami()))

    async def pause_tailer(self, gate: Gate) -> str:
        """Pauses or resumes the tailer of `gate.source`, wherever it runs."""
        return await self._pause_tailer(gate if gate.who else replace(gate, who=whoami()))

    async def seek_tailer(self, seek: Seek) -> list[Move]:
        """Moves the checkpoint of a paused or stopped tailer."""
        return await self._seek_tailer(seek if seek.who else seek._replace(who=whoami()))

    async def forget_tailer(self, order: ForgetTailer) -> str:
        """Forgets a tailer that runs nowhere. Returns the stream of the log that it read; empty: none."""
        return await self._forget_tailer(order if order.who else order._replace(who=whoami()))

    async def create_token(self, order: TokenOrder) -> MadeToken:
        """Makes a token."""
        return await self._create_token(order if order.who else replace(order, who=whoami()))

    async def start_replay(self, order: ReplayOrder) -> ReplayView:
        """Runs a part of a stream's past again, or says what that would be."""
        return await self._start_replay(order if order.who else order._replace(who=whoami()))
