"""What a Redis server promises, and which ones a queue cannot rest on."""

from __future__ import annotations

from typing import Any

from ...sdk.model.errors import ConfigError, NotConnected
from ..redis import RedisServer
from .redis_home import facts_of
from .redis_script import queue_script

#: The oldest version whose scripts may say that they run although the memory is full.
OLDEST = 7

_FACTS = queue_script("no-writes", "return redis.call('INFO', 'everything')")

#: What the setting of appendfsync means.
_PROFILES = {
    "always": "durable (appendfsync always): what it acknowledged is on its disk",
    "everysec": "relaxed (appendfsync everysec): about a second of accepted work may be lost when its machine dies",
    "no": "relaxed (appendfsync no): accepted work that its system had not written yet is lost when its machine dies",
}


async def profile(server: RedisServer, base: str, *, durable: bool, cluster: bool) -> str:
    """What it promises, in a line. Raises ConfigError for a server that cannot keep a queue, or not as it should,
    NotConnected for one that takes no writes now."""
    try:
        text = await server.run(_FACTS, [base], 0, about="its settings")
    except NotConnected as error:
        if "ompil" in str(error):  # Error compiling script: it does not know what scripts may say of themselves
            raise ConfigError(f"{server.name} is too old: expected Redis {OLDEST} or newer") from None
        raise
    facts = facts_of(text)
    if int(str(facts.get("redis_version", f"{OLDEST}")).partition(".")[0]) < OLDEST:
        raise ConfigError(f"{server.name} is of version {facts['redis_version']}: expected Redis {OLDEST} or newer")
    if facts.get("role") == "slave":
        raise NotConnected(f"{server.name} is a replica, which takes no writes: give the address of its master")
    if facts.get("cluster_enabled") == "1" and not cluster:
        raise ConfigError(f"{server.name} is a node of a Redis Cluster: set `cluster: true` for the queue")
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise ConfigError(
            f"{server.name} throws data away when it is full (maxmemory-policy {policy}): a queue must lose nothing. "
            "Run CONFIG SET maxmemory-policy noeviction, and set it in redis.conf, or give another server"
        )
    return _promised(server, facts, await _fsync(server), durable=durable)


async def _fsync(server: RedisServer) -> str:
    try:
        found = await server.call("CONFIG", "GET", "appendfsync", about="its settings")
    except NotConnected as error:
        if "may not" in str(error) or "unknown command" in str(error):
            return "unknown"  # not every user may ask
        raise
    return str(found[1].decode()) if found else "unknown"


def _promised(server: RedisServer, facts: dict[str, Any], fsync: str, *, durable: bool) -> str:
    if facts.get("aof_enabled") != "1":
        raise ConfigError(
            f"{server.name} has no append-only file (appendonly no), so a restart loses what was accepted since its "
            "last snapshot: run CONFIG SET appendonly yes, and set it in redis.conf"
            + (", with appendfsync always" if durable else "")
        )
    if durable and fsync != "always":
        unknown = "does not let this user ask for it (CONFIG GET appendfsync)"
        raise ConfigError(
            f"{server.name} {unknown if fsync == 'unknown' else f'has appendfsync {fsync}'}, so what it acknowledges "
            "may be lost: run CONFIG SET appendfsync always, and set it in redis.conf, or set `durability: relaxed` in "
            "stores.yaml: then about a second of accepted work may be lost"
        )
    return _PROFILES.get(fsync, "of unknown durability: it does not let this user ask for appendfsync")
