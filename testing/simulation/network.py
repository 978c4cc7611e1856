"""The network between simulated hosts: the ways of calls, the delays of messages, the directions that are cut.

It stands where gRPC does: `dial` and `serve` of wire/channel.py hand out its channels and servers, so every client,
servicer, stub and serialiser is the real one, and hosts share nothing but bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .channel import Channel, Server
from .exchange import Exchange
from .host import Host, here
from .world import World

#: Seconds after which a connection that carries nothing is given up: gRPC's keep-alive, time and timeout.
KEEPALIVE = 25.0


@dataclass(slots=True)
class Weather:
    """The weather of the network at present. Chances are per call or message; delays are seconds.

    drop_request   the connection breaks before the request arrives
    drop_reply     … after the request went through: the caller does not know
    repeat         a call arrives twice
    late, lateness a message is late by up to so many seconds
    reset          a stream's connection breaks at a message
    """

    drop_request: float = 0.0
    drop_reply: float = 0.0
    repeat: float = 0.0
    late: float = 0.0
    lateness: float = 3.0
    reset: float = 0.0


class SimNetwork:
    """The network: its servers, and the exchanges under way. `fronts` are addresses that several servers stand behind:
    each call and each connection goes to one of them that listens, or to the host that it is `steered` to. Invariant: a
    direction (a, b) in `cuts` carries nothing before the time that stands there."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.weather = Weather()
        self.servers: dict[str, Server] = {}
        self.exchanges: dict[Exchange, None] = {}
        self.cuts: dict[tuple[str, str], float] = {}
        self.fronts: dict[str, Sequence[str]] = {}
        self.steered: dict[str, str] = {}
        self.zombies: dict[tuple[str, str], tuple[float, float]] = {}
        self.said: Callable[[Any, Any], None] = lambda stream, message: None
        self.heard: Callable[[str, str, str, bytes], None] | None = None  # recording.py

    # ---- what wire/channel.py asks of a network

    def dial(self, address: str) -> Any:
        """Makes a channel of the host whose code is running."""
        return Channel(self, here(), address)

    async def serve(self, address: str, register: Sequence[Callable[[Any], None]]) -> tuple[Any, str]:
        """Makes a server of the host whose code is running."""
        server = Server(self, here(), address)
        for add in register:
            add(server)
        self.servers[address] = server
        return server, address

    def server(self, address: str) -> Server | None:
        """The server that answers at an address now, if any."""
        behind = self.fronts.get(address)
        if behind is None:
            return self.servers.get(address)
        listening = [each for each in behind if each in self.servers]
        steered = [each for each in listening if self.servers[each].host.name == self.steered.get(address)]
        among = steered or listening
        if len(among) > 1:
            return self.servers[self.world.random.choice(among)]
        return self.servers[among[0]] if among else None

    # ---- how messages travel

    def delay(self, source: Host, target: Host) -> float:
        """Seconds that the next message takes, without what a cut adds."""
        world, weather = self.world, self.weather
        delay = 0.0001 + 0.0009 * world.random.random()
        if weather.late and source is not target and world.random.random() < weather.late:
            delay += weather.lateness * world.random.random()
        return delay

    def arrival(self, source: Host, target: Host) -> float:
        """The time at which a message that leaves now arrives."""
        return max(self.world.now, self.cuts.get((source.name, target.name), 0.0)) + self.delay(source, target)

    def chance(self, chance: float, source: Host, target: Host) -> bool:
        """Draws whether something of that chance happens between two hosts; never within one."""
        return chance > 0 and source is not target and self.world.random.random() < chance

    # ---- faults

    def cut(self, source: str, target: str, seconds: float) -> None:
        """Keeps everything from going from one host to another for so long; messages sent meanwhile arrive later,
        unless the connection is given up before."""
        world = self.world
        until = world.now + seconds
        self.cuts[(source, target)] = max(until, self.cuts.get((source, target), 0.0))
        world.say(source, f"cut off towards {target} for {seconds:.2f} s")
        world.after(KEEPALIVE, self._give_up, source, target)

    def _give_up(self, source: str, target: str) -> None:
        if self.cuts.get((source, target), 0.0) > self.world.now:
            self.reset(source, target)

    def heal(self) -> None:
        """Heals the network: all directions carry again, and nothing is lost or late any more."""
        self.cuts.clear()
        self.steered.clear()
        self.weather = Weather()

    def keep_back(self, source: str, target: str, window: float, late: float) -> None:
        """Holds requests back: those from one host to another within `window` seconds land `late` seconds later, as
        writes do that a kernel or a switch still had."""
        self.zombies[source, target] = (self.world.now + window, late)

    def kept_back(self, source: Host, target: Host) -> float:
        """Seconds by which a request that leaves now lands too late; 0: it is in time."""
        until, late = self.zombies.get((source.name, target.name), (0.0, 0.0))
        return late if self.world.now < until else 0.0

    def steer(self, host: str) -> None:
        """Steers to this host all that is sent to the front that it stands behind."""
        for front, behind in self.fronts.items():
            if any(address.startswith(f"{host}:") for address in behind):
                self.steered[front] = host

    def reset(self, one: str, other: str) -> None:
        """Breaks every connection between two hosts."""
        for exchange in list(self.exchanges):
            if {exchange.client.name, exchange.server_name} == {one, other}:
                exchange.broken("connection reset")

    def died(self, host: Host, silent: bool = False) -> None:
        """Breaks the connections of a process that is gone: soon, or only by keep-alive when its machine went with
        it."""
        for address in [address for address, server in self.servers.items() if server.host is host]:
            del self.servers[address]
        delay = KEEPALIVE if silent else 0.002 * self.world.random.random()
        for exchange in list(self.exchanges):
            if host in (exchange.client, exchange.target):
                self.world.after(delay, exchange.broken, "the other side died")
