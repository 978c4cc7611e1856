"""Time as an argument: shells take a Clock, rules take `now`."""

from __future__ import annotations

import sys
import time
from functools import cache
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """The clocks of one host, in seconds. `monotonic` orders and measures within this host; `wall` is the time that
    people and stores write down; `processor` is the processor time that this process used."""

    def monotonic(self) -> float: ...

    def wall(self) -> float: ...

    def processor(self) -> float: ...


class SystemClock:
    """The clocks of this machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    def processor(self) -> float:
        return time.process_time()


SYSTEM_CLOCK = SystemClock()


@cache
def boot() -> str:
    """The name of this run of the machine: moments of the monotonic clock mean the same to all who read the same name.
    Empty: this system does not say."""
    if sys.platform == "darwin":
        import subprocess

        asked = subprocess.run(["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, check=False)
        return asked.stdout.decode(errors="replace").strip()
    try:
        name = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    try:  # a time namespace has a monotonic clock of its own
        return f"{name} {Path('/proc/self/ns/time').readlink()}"
    except OSError:
        return name
