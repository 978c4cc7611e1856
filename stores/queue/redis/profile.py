"""Promises of a Redis server, and the refusal of servers that a queue cannot rest on."""

from __future__ import annotations

from ....model.errors import ConfigError, NotConnected
from ...redis import trust
from ...redis.server import RedisServer
from ...redis.trust import OLDEST, facts
from .script import queue_script

_FACTS = queue_script("no-writes", "return redis.call('INFO', 'everything')")


async def profile(server: RedisServer, base: str, *, durability: str, cluster: bool) -> str:
    """The server's promises, in a line. Raises ConfigError for a server that cannot hold a queue, or not in the way
    that was asked for; NotConnected for one that takes no writes now."""
    try:
        text = await server.run(_FACTS, [base], 0, about="the server's settings")
    except NotConnected as error:
        if "ompil" in str(error):  # "Error compiling script": this version does not know flags of scripts
            raise ConfigError(f"{server.name} is too old: expected Redis {OLDEST} or newer") from None
        raise
    return await trust.profile(server, facts(text), durability, cluster=cluster, about="queue")
