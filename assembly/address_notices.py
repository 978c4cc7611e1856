"""Tells the address of a gateway or scheduler, as long as it listens, by a notice in the run directory."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from ..foundation.clock import SYSTEM_CLOCK
from ..foundation.duties import Duties
from ..foundation.lifecycle import Group, Part
from ..foundation.notices import Posted
from ..foundation.run_dir import RunDir
from ..model.errors import ConfigError
from ..model.metrics import Sample
from ..wire.shared_secret import ENTRY
from .remade import Remade

#: Seconds between looks at the notice: somebody may remove it, or the whole directory.
LOOK = 10.0

_LOG = logging.getLogger("tailrace.parts")


class Listening(Part, Protocol):
    """A part that knows its address once it is started. One that is opened again listens where it did."""

    @property
    def address(self) -> str: ...


class Posting:
    """The notice of a part that listens: a Part, to be started after it. `kind` is gateway or scheduler, `home` says of
    which platform. A directory that takes no notice is a warning: a caller who is given the address finds the part all
    the same. A notice that somebody removes is made again, with the card that callers show."""

    def __init__(self, run_dir: RunDir, kind: str, home: str, part: Listening) -> None:
        self._run_dir = run_dir
        self._kind = kind
        self._home = home
        self._part = part
        self._posted = Posted(run_dir, kind)
        self.duties = Duties(f"the notice of the {kind}")

    async def start(self) -> None:
        """Posts the address."""
        self._tell()
        self.duties.begin(self._keep(), f"keep-{self._kind}-notice")

    def _tell(self) -> None:
        check = ENTRY.get()
        try:
            self._run_dir.open(check.card.secret if check is not None else "")
            self._posted.post(self._part.address, self._home)
        except (ConfigError, OSError) as error:
            why = str(error) if isinstance(error, ConfigError) else f"{self._run_dir.path}: {error.strerror}"
            if self.duties.ails("telling where it listens", why, SYSTEM_CLOCK.monotonic()):
                option = f"--{self._kind} {self._part.address}"
                _LOG.warning("no notice tells where the %s listens, so commands need %s: %s", self._kind, option, why)
        else:
            self.duties.well("telling where it listens")

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            if not self._posted.stands():
                self._posted.withdraw()
                self._run_dir.close()  # it may be another one by now
                self._tell()
                if self._posted.stands():
                    _LOG.warning(
                        "the notice of the %s was gone from %s, and is made again", self._kind, self._run_dir.path
                    )

    async def drain(self, timeout: float) -> None:
        """Takes the notice back: the part takes nothing new."""
        await self.duties.end()
        self._posted.withdraw()

    async def stop(self) -> None:
        """Takes the notice back. Harmless twice."""
        await self.duties.end()
        self._posted.withdraw()
        self._run_dir.close()


class WithNotice(Group):
    """A part that is made anew whenever it fails, and the notice of its address. A Part."""

    def __init__(self, run_dir: RunDir, kind: str, home: str, part: Remade) -> None:
        self._part = part
        super().__init__([part, Posting(run_dir, kind, home, part)])

    @property
    def address(self) -> str:
        """The address at which it listens."""
        return self._part.address

    async def samples(self) -> list[Sample]:
        """Metrics of the part now."""
        return await self._part.samples()
