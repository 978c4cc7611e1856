"""A fleet of certificates in a folder, and processes or calls that have one of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.foundation.certificates import VARIABLE
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.foundation.issuing import Authority

HOST = "127.0.0.1"
DAY = 86_400


class Fleet:
    """An authority in `folder`; `with_` uses one of its certificates for all connections and servers meanwhile."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "f1") -> None:
        self.folder = folder
        self._patch = monkeypatch
        self.authority = Authority.made(folder, name, SYSTEM_CLOCK.wall())

    def issue(
        self, role: str, name: str = "x", *, hosts: tuple[str, ...] = (), ago: float = 0.0, days: int = 30
    ) -> Path:
        """A certificate made `ago` days before now."""
        hosts = hosts or ((HOST,) if role in ("node", "gateway", "scheduler") else ())
        return self.authority.issue(role, name, hosts, SYSTEM_CLOCK.wall() - ago * DAY, days)

    @contextlib.contextmanager
    def as_(self, folder: Path | None) -> Iterator[None]:
        """Acts with the certificate in this folder; None: without any."""
        with self._patch.context() as patch:
            if folder is None:
                patch.delenv(VARIABLE, raising=False)
            else:
                patch.setenv(VARIABLE, str(folder))
            yield
