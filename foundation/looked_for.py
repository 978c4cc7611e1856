"""The address of another part, and where it comes from: an operator must see that when the part is called in vain. One
that nobody named and that was looked for on this machine may turn up elsewhere later, as where parts are started
together in any order."""

from __future__ import annotations

import logging
import socket
import threading
import time
from typing import Self

from ..model.address import read_address
from .notices import Notice, notices

LOG = logging.getLogger("tailrace.discovery")
#: Seconds between two looks.
LOOK_AGAIN = 1.0
#: Seconds within which a listener on loopback accepts a connection, if it accepts one at all.
ANSWERED_WITHIN = 0.1


class ChosenAddress(str):
    """An address, host:port. `why` it is called, as a clause: `--scheduler names it`."""

    why: str

    def __new__(cls, address: str, why: str) -> Self:
        made = super().__new__(cls, address)
        made.why = why
        return made

    @property
    def called(self) -> str:
        """The address that is called."""
        return str(self)


def described(address: str) -> str:
    """An address for operators, with why it is called where that is known."""
    if not isinstance(address, ChosenAddress):
        return address
    return f"{address.called} (called because {address.why})"


class LookedFor(ChosenAddress):
    """An address as it was found first. `part` is gateway or scheduler; `home`: its platform's home, where that is
    known. For any thread."""

    def __new__(cls, address: str, part: str, home: str = "", why: str = "it was looked for") -> Self:
        made = super().__new__(cls, address, why)
        made._part, made._home, made._now = part, home, str(address)
        made._again, made._lock = 0.0, threading.Lock()
        return made

    _part: str
    _home: str
    _now: str
    _again: float
    _lock: threading.Lock

    @property
    def called(self) -> str:
        return self._now

    def now(self) -> str:
        """The address now. It moves only where the former one does not answer, and one part of the kind, of the same
        platform if that is known, says by its notice where it listens."""
        with self._lock:
            if time.monotonic() < self._again:
                return self._now
            self._again = time.monotonic() + LOOK_AGAIN
            known = notices(self._part)
            if any(each.address == self._now for each in known) or answers(self._now):
                return self._now
            found = [each for each in known if self._home in ("", each.home)]
            if len(found) == 1:
                self._move(found[0])
            return self._now

    def _move(self, notice: Notice) -> None:
        LOG.info("the %s is found at %s, where its notice says it listens", self._part, notice.address)
        self._now, self._home, self.why = notice.address, notice.home, "its notice says that it listens there"


def answers(address: str) -> bool:
    """Whether somebody listens at an address of this machine; of others nothing is known, and they count as well."""
    there = read_address(address)
    if there is None or not there.loopback:
        return True  # nothing is known of it
    try:
        socket.create_connection((there.bare_host, there.port), ANSWERED_WITHIN).close()
    except TimeoutError:
        return True  # it takes no more of them just now
    except OSError:
        return False
    return True
