"""Hosts as network namespaces with addresses of their own, and between them a wire that can be broken packet by packet.

Linux and root can have them. Namespaces, devices and the wire's process are made when it starts, gone when it stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import NamedTuple

from ...model.errors import ConfigError
from .host_wire import HostBreak

_NEW_NETWORK = 0x40000000
#: The network namespace of this process.
_MINE = Path("/proc/self/ns/net")
#: Seconds within which the wire's process answers.
_WITHIN = 10.0


class NetworkHost(NamedTuple):
    """One host: the name of its namespace and device, and its address for others."""

    name: str
    address: str

    @property
    def within(self) -> tuple[str, ...]:
        """The words before a command that runs there."""
        return ("ip", "netns", "exec", self.name)


class HostNetworks:
    """The networks of `count` hosts. Invariant: everything that `start` made is gone after `stop`, also after a failed
    start."""

    def __init__(self, count: int) -> None:
        tag = uuid.uuid4().hex[:6]
        self.hosts = [NetworkHost(f"tr{tag}{number}", f"10.77.1.{number}") for number in range(1, count + 1)]
        self._wire: asyncio.subprocess.Process | None = None
        self._broken: set[HostBreak] = set()
        self._lock = asyncio.Lock()
        self._former: int | None = None

    async def start(self) -> None:
        """Makes the hosts. Raises ConfigError where they are not possible."""
        names = [host.name for host in self.hosts]
        try:
            for name in names:
                _run("ip", "netns", "add", name)
            self._wire = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", f"{__package__}.host_wire", *names),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            await self._answered()
            for name, address in self.hosts:
                _run("ip", "link", "set", name, "netns", name)
                _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", name)
                for device in ("lo", name):
                    _run("ip", "-n", name, "link", "set", device, "up")
        except (OSError, subprocess.CalledProcessError, ConfigError) as error:
            said = getattr(error, "stderr", b"") or str(error).encode()
            await self.stop()
            raise ConfigError(
                "hosts as network namespaces need Linux, root, iproute2 and /dev/net/tun: "
                + said.decode(errors="replace").strip()
            ) from None

    def enter(self, number: int) -> None:
        """Moves this thread, and all that it starts, to a host. Raises OSError."""
        self._former = self._former if self._former is not None else os.open(_MINE, os.O_RDONLY)
        there = os.open(f"/run/netns/{self.hosts[number - 1].name}", os.O_RDONLY)
        try:
            _enter(there)
        finally:
            os.close(there)

    async def stop(self) -> None:
        """Leaves the hosts, and removes them. Harmless when there are none."""
        if self._former is not None:
            _enter(self._former)
            os.close(self._former)
            self._former = None
        if self._wire is not None:
            with contextlib.suppress(ProcessLookupError):
                self._wire.kill()
            await self._wire.wait()
            self._wire = None
        for host in self.hosts:
            with contextlib.suppress(OSError, subprocess.CalledProcessError):
                _run("ip", "netns", "del", host.name)

    async def cut(self, broken: HostBreak) -> None:
        """Breaks a wire; returns when it is broken."""
        async with self._lock:
            self._broken.add(broken)
            await self._tell()

    async def heal(self, broken: HostBreak) -> None:
        """Takes one way of breaking a wire back; returns when that is so."""
        async with self._lock:
            self._broken.discard(broken)
            await self._tell()

    async def _tell(self) -> None:
        assert self._wire is not None
        assert self._wire.stdin is not None
        self._wire.stdin.write(json.dumps([list(each) for each in self._broken]).encode() + b"\n")
        await self._answered()

    async def _answered(self) -> None:
        assert self._wire is not None
        assert self._wire.stdout is not None
        async with asyncio.timeout(_WITHIN):
            if not await self._wire.stdout.readline():
                raise ConfigError("the wire between the hosts ended")


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def _enter(network: int) -> None:
    """Puts this thread into a network namespace, which Python itself does from 3.12 on."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(network, _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "this network cannot be entered")
