"""The wire between hosts that are network namespaces: a program that passes packets on, late, or not at all.

`python -m tailrace.bench.faults.host_wire NAME…` makes a device (TUN) of each name. The n-th one is the n-th host's,
and the starter of the program moves it to its namespace. Packets go by the last byte of their address, which is the
host's number. A line of JSON on standard input lists the breaks from now on, and is answered by one on standard output
when that is so. TCP is the hosts' own, so lost packets are sent again by their kernels, as between machines.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import json
import os
import random
import selectors
import struct
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

#: The ways in which a host's wire is broken: late, lossy, cut off, hears nobody, heard by nobody.
LAG, LOSS, APART, DEAF, MUTE = "lag", "loss", "apart", "deaf", "mute"
HOST_WAYS = (LAG, LOSS, APART, DEAF, MUTE)
#: Seconds by which each way through a late host is later, and the share of packets that a lossy one loses.
LATE, LOST = 0.15, 0.1

_SET_NAME, _TUN, _PLAIN = 0x400454CA, 0x0001, 0x1000
_PACKET = 1 << 16
#: Packets taken of a device before the others have their turn.
_TURN = 64
#: The shortest header of an IPv4 packet, and the places of the last byte of either address.
_HEADER, _SOURCE, _TARGET = 20, 15, 19


class HostBreak(NamedTuple):
    """One way in which one host's wire is broken."""

    host: int
    way: str


class PacketFate:
    """Decides the fate of packets while some wires are broken. `chance` decides which packets a lossy wire loses."""

    def __init__(self, chance: random.Random) -> None:
        self.broken: frozenset[HostBreak] = frozenset()
        self._chance = chance

    def delay(self, source: int, target: int) -> float | None:
        """Seconds until a packet from a host to another one arrives; None: it does not."""
        late = 0.0
        for host, way in self.broken:
            if host not in (source, target):
                continue
            if way == APART or (way == DEAF and host == target) or (way == MUTE and host == source):
                return None
            if way == LOSS and self._chance.random() < LOST:
                return None
            if way == LAG:
                late += LATE
        return late


class HostWire:
    """The devices, and the packets that are late."""

    def __init__(self, names: Sequence[str], passing: PacketFate) -> None:
        self._passing = passing
        self._devices = {number: _device(name) for number, name in enumerate(names, 1)}
        self._late: list[tuple[float, int, int, bytes]] = []
        self._number = 0
        self._said = b""

    def run(self) -> None:
        """Passes packets on until standard input ends."""
        with selectors.DefaultSelector() as selector:
            for number, device in self._devices.items():
                selector.register(device, selectors.EVENT_READ, number)
            selector.register(0, selectors.EVENT_READ, 0)
            while True:
                pause = max(0.0, self._late[0][0] - time.monotonic()) if self._late else None
                for key, _ in selector.select(pause):
                    if key.data:
                        self._take(key.data)
                    elif not self._hear():
                        return
                self._arrive()

    def _hear(self) -> bool:
        said = os.read(0, _PACKET)
        *lines, self._said = (self._said + said).split(b"\n")
        for line in lines:
            self._passing.broken = frozenset(HostBreak(*each) for each in json.loads(line))
            os.write(1, b"{}\n")
        return bool(said)

    def _take(self, source: int) -> None:
        for _ in range(_TURN):
            try:
                packet = os.read(self._devices[source], _PACKET)
            except BlockingIOError:
                return
            except OSError:  # its host has not brought it up yet
                return
            if len(packet) < _HEADER or packet[0] >> 4 != 4 or packet[_SOURCE] != source:
                continue
            target = packet[_TARGET]
            late = self._passing.delay(source, target) if target in self._devices else None
            if late is None:
                continue
            if late:
                self._number += 1
                heapq.heappush(self._late, (time.monotonic() + late, self._number, target, packet))
            else:
                self._give(target, packet)

    def _arrive(self) -> None:
        now = time.monotonic()
        while self._late and self._late[0][0] <= now:
            _, _, target, packet = heapq.heappop(self._late)
            self._give(target, packet)

    def _give(self, target: int, packet: bytes) -> None:
        with contextlib.suppress(OSError):  # else lost, as on a wire that is full, or to a host that is down
            os.write(self._devices[target], packet)


def _device(name: str) -> int:
    """Makes a device, which goes with the descriptor that is returned. Raises OSError where that is not allowed."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _SET_NAME, struct.pack("16sH22x", name.encode(), _TUN | _PLAIN))
    return device


def main() -> None:
    """Runs the program."""
    wire = HostWire(sys.argv[1:], PacketFate(random.Random("host wire")))
    os.write(1, b"{}\n")
    wire.run()


if __name__ == "__main__":
    main()
