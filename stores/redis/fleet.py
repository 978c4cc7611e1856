"""The fleet of a store in Redis: a field of one of its keys, which the first fleet sets."""

from __future__ import annotations

from ..fleets import refuse_another
from .script_flags import settles
from .server import RedisServer

#: KEYS: a hash. ARGV: a fleet. Answers the fleet that was noted first.
BELONG = settles("""
redis.call('HSETNX', KEYS[1], 'fleet', ARGV[1])
return redis.call('HGET', KEYS[1], 'fleet')
""")


async def refuse_another_fleet(server: RedisServer, key: str, store: str, fleet: str) -> None:
    """Notes in `key` that its store belongs to this fleet; nothing for a process without a fleet. Raises ConfigError
    where it belongs to another one. `store`: the store's name in messages."""
    if fleet:
        owner = await server.run(BELONG, [key], fleet, about="its fleet")
        refuse_another(f"{store} in {server.name}", owner.decode(), fleet, "another `prefix` in stores.yaml")
