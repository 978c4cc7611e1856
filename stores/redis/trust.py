"""Trust in a server with data that must not be lost, the queue and the state alike: THE rule, from the server's own
description to a ConfigError or a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...model.errors import ConfigError, NotConnected
from .server import RedisServer, a_sentinel

#: The oldest server: scripts that run when it is full are from Redis 7 on.
OLDEST = 7
#: Seconds after which the promises of a server in use are looked at again: its settings may be changed meanwhile.
LOOK_AGAIN = 60.0
#: Settings that are read by CONFIG GET.
ASKED = ("appendfsync", "no-appendfsync-on-rewrite")
#: Words of the answer to a user who may not read them.
_NOT_TOLD = ("may not do that", "unknown command")


def facts(info: bytes) -> dict[str, str]:
    """The values that INFO tells, by name."""
    pairs = (line.partition(":") for line in info.decode(errors="replace").splitlines())
    return {name: value for name, _, value in pairs}


async def profile(server: RedisServer, info: Mapping[str, str], durability: str, *, cluster: bool, about: str) -> str:
    """The profile of a server whose INFO is `info`; `cluster`: it may be a node of one; `about`: the store that asks,
    in messages. Raises the errors of `trusted`, and NotConnected for a replica."""
    refuse_sentinel(server.name, info)
    if info.get("role") == "slave":
        await server.dial_anew()  # the name may lead to the master by now
        raise NotConnected(
            f"{server.name} is a replica, which takes no writes: give the address of its master, or let this one lead "
            "to it"
        )
    if info.get("cluster_enabled") == "1" and not cluster:
        raise ConfigError(f"{server.name} is a node of a Redis Cluster: set `cluster: true` for the {about}")
    config: dict[str, str] = {}
    try:
        answer = await server.call("CONFIG", "GET", *ASKED, about="its settings")
        config = dict(zip(_texts(answer[::2]), _texts(answer[1::2]), strict=True))
    except NotConnected as error:
        if not any(words in str(error) for words in _NOT_TOLD):
            raise
    with server.judged(info.get("run_id", "")):
        refuse_unwritten(server.name, info, server.trusted_run)
        promised = trusted(server.name, info, config, durability)
    if server.replicas:
        return f"{promised}, and {server.replicas} of its replicas have it"
    if info.get("connected_slaves", "0") != "0":
        return f"{promised}; a replica that is promoted may lack the last ones (`replicas: 0`)"
    return promised


def refuse_sentinel(server: str, info: Mapping[str, str]) -> None:
    """Raises ConfigError for a Sentinel, which has no data."""
    if info.get("redis_mode") == "sentinel":
        raise a_sentinel(server)


def refuse_unwritten(server: str, info: Mapping[str, str], trusted_run: str = "") -> None:
    """Raises NotConnected while a server writes its append-only file anew, unless this run of it (`run_id`) was trusted
    before: of the first file nothing counts before it is whole, and INFO tells it from later ones in no way that
    holds."""
    if info.get("aof_enabled") != "1" or (trusted_run and info.get("run_id") == trusted_run):
        return
    failed = info.get("aof_last_bgrewrite_status", "ok") != "ok" and info.get("aof_base_size") == "0"
    if failed or "1" in (info.get("aof_rewrite_in_progress"), info.get("aof_rewrite_scheduled")):
        why = "; the last try failed, see its log" if failed else ""
        raise NotConnected(
            f"{server} is writing its append-only file anew (INFO persistence: aof_rewrite_in_progress), and if that "
            f"is its first one a restart loses everything until it is whole: waiting for its end{why}"
        )


def _texts(parts: Sequence[bytes]) -> list[str]:
    return [part.decode() for part in parts]


def trusted(server: str, info: Mapping[str, str], config: Mapping[str, str], durability: str) -> str:
    """The profile of a server, a text for people. `config` has its values of ASKED, or nothing where the user may not
    read them; `durability` is durable or relaxed. Raises ConfigError for a server that could lose more than that
    allows."""
    version = info.get("redis_version", "0")
    if int(version.partition(".")[0]) < OLDEST:
        raise ConfigError(f"{server} is of version {version}: expected Redis {OLDEST} or newer")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise ConfigError(
            f"{server} evicts data when it is full (maxmemory-policy {policy}): expected noeviction. "
            "Run CONFIG SET maxmemory-policy noeviction, and write it into redis.conf; or give another server"
        )
    if info.get("aof_enabled") != "1":
        raise ConfigError(
            f"{server} has no append-only file, so that its restart may lose everything since its last snapshot: run "
            "CONFIG SET appendonly yes, which writes all that it holds to its disk once (a fork, and about as much "
            "disk as the data has memory); wait until INFO persistence says aof_rewrite_in_progress:0, and only then "
            "write appendonly yes into redis.conf: a server with data that is restarted with that first begins empty"
        )
    fsync = config.get("appendfsync", "")
    if durability == "durable":
        return _durable(server, fsync, config)
    if fsync == "no":
        raise ConfigError(
            f"{server} leaves the time of its disk writes to the operating system (appendfsync no): expected everysec "
            "or always. Run CONFIG SET appendfsync everysec, and write it into redis.conf"
        )
    if fsync == "always":
        return "appendfsync always: every acknowledged write is on its disk"
    said = "" if fsync else " (it does not say: appendfsync everysec is assumed)"
    return (
        "relaxed (appendfsync everysec): about a second of accepted work may be lost, the last second before a power "
        f"cut or a crash of the server{said}"
    )


def _durable(server: str, fsync: str, config: Mapping[str, str]) -> str:
    if not fsync:
        raise ConfigError(
            f"{server} does not say how it writes to its disk, and durability: durable must know: allow this user "
            "CONFIG GET (ACL SETUSER … +config|get), or write durability: relaxed into stores.yaml"
        )
    if fsync != "always":
        raise ConfigError(
            f"{server} has appendfsync {fsync}, so it may lose its last second, and durability is durable: run CONFIG "
            "SET appendfsync always, and write it into redis.conf; or write durability: relaxed into stores.yaml"
        )
    if config.get("no-appendfsync-on-rewrite") == "yes":
        raise ConfigError(
            f"{server} writes nothing to its disk while it rewrites its file (no-appendfsync-on-rewrite yes), and "
            "durability is durable: run CONFIG SET no-appendfsync-on-rewrite no, and write it into redis.conf"
        )
    return "durable: every acknowledged write is on its disk (appendfsync always)"
