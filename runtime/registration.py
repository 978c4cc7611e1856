"""Announces a worker's functions to the gateway, so that submissions are accepted while no worker is there."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable
from hashlib import blake2s

import grpc

from ..model.backoff import STORE, Backoff
from ..model.errors import TailraceError, UserError
from ..model.function_spec import FunctionSpec
from ..wire.channel import dial, error_of
from ..wire.convert import function_to_wire
from ..wire.gateway import GatewayClient
from ..wire.v1 import gateway_pb2 as pb
from ..wire.v1 import gateway_pb2_grpc

LOG = logging.getLogger("tailrace.runtime")
DEADLINE = 5.0
#: Seconds between two looks at what ails, and between two reports of the same; seconds until the next try after one
#: that the gateway did not take.
LOOK, AGAIN, NEXT_TRY = 1.0, 60.0, 10.0


def version_word(spec: FunctionSpec) -> str:
    """A word for a function's version and the arguments that it takes, as announced (scheduler/rules/misfit.py)."""
    return blake2s(f"{spec.version}\n{spec.arguments}".encode(), digest_size=8).hexdigest()


async def register(address: str, worker: str, specs: Iterable[FunctionSpec]) -> None:
    """Registers functions with the gateway: tries until it takes them. Each new reason why not is logged, as an error
    where the gateway refuses them: only a change of the functions, or of rights, helps then."""
    request = pb.RegisterFunctionsRequest(worker=worker, functions=[function_to_wire(spec) for spec in specs])
    backoff = Backoff(*STORE, random.random)
    told = ""
    async with dial(address) as channel:
        stub = gateway_pb2_grpc.GatewayStub(channel)  # type: ignore[no-untyped-call]
        while True:
            try:
                await stub.RegisterFunctions(request, timeout=DEADLINE)
            except grpc.aio.AioRpcError as error:
                why = error_of(error, address)
                if str(why) != told:
                    told = str(why)
                    level = logging.ERROR if isinstance(why, UserError) else logging.WARNING
                    LOG.log(level, "functions of worker %s are not registered yet: %s", worker, told)
            else:
                return
            await asyncio.sleep(backoff.pause())


async def tell_failures(address: str, worker: str, failing: Callable[[], str]) -> None:
    """Tells the gateway, for its alerts, what ails this worker, while that is so, and once when it is well again. A
    gateway that is away hears it the next time."""
    told, again_at = "", 0.0
    while True:
        await asyncio.sleep(LOOK)
        why, now = failing(), time.monotonic()
        if why == told and (not why or now < again_at):
            continue
        try:
            async with GatewayClient(address) as client:
                await client.tell_failure(f"worker {worker}", why, 0)
        except TailraceError as error:
            LOG.debug("the gateway was not told what ails this worker: %s", error)
            await asyncio.sleep(NEXT_TRY)
        else:
            told, again_at = why, now + AGAIN
