"""The fleet that some keys of a Redis server are of: a field of one of them, which the first one sets."""

from __future__ import annotations

from ..fleets import refuse_another
from .maxmemory import settles
from .server import RedisServer

#: KEYS: a hash. ARGV: a fleet. Answers the one that said so first.
BELONG = settles("""
redis.call('HSETNX', KEYS[1], 'fleet', ARGV[1])
return redis.call('HGET', KEYS[1], 'fleet')
""")


async def refuse_another_fleet(server: RedisServer, key: str, store: str, fleet: str) -> None:
    """Says that the store of `key` is of this fleet; none: nothing is said. Raises ConfigError where it is another
    one's. `store`: what it is, for messages."""
    if fleet:
        owner = await server.run(BELONG, [key], fleet, about="its fleet")
        refuse_another(f"{store} in {server.name}", owner.decode(), fleet, "another `prefix` in stores.yaml")
