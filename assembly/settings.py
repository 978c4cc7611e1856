"""The configuration directory: one optional YAML file per part, `tailers/*.yaml`, `quotas.yaml`, `schedules.yaml`,
`leases.yaml`, `access.yaml`.

A file that is absent means the defaults. Everything is read and checked before anything starts.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, field_validator

from ..foundation.config import Seconds, load
from ..model.did_you_mean import meant, nearest
from ..model.errors import ConfigError, InvalidRequest
from ..model.grants import read_grants
from ..model.lease import LeaseSizes
from ..tailers.tailer_files import is_tailer_file, listed, unreadable

M = TypeVar("M", bound=BaseModel)

#: The files a configuration directory may hold, beside the folder `tailers`.
FILES = (
    "access.yaml",
    "client.yaml",
    "delay.yaml",
    "gateway.yaml",
    "leases.yaml",
    "quotas.yaml",
    "scheduler.yaml",
    "schedules.yaml",
    "stores.yaml",
    "worker.yaml",
)
#: The folder with a file for each tailer.
TAILERS = "tailers"
#: The configuration that comes with the package: one file of each kind, to copy from.
EXAMPLES = Path(__file__).resolve().parents[1] / "configs"


class AccessConfig(BaseModel):
    """The callers (`access.yaml`) that may call the parts which run here, besides the user that runs them.

    group   a group of this machine whose members may: operators, who then set TAILRACE_RUN_DIR to the run directory
            (default: nobody else)
    tls     a folder with tls.crt, tls.key and ca.crt, as `tailrace auth init` and cert-manager make: the certificate
            that this process shows beyond its machine, and the authorities it trusts there (default: TAILRACE_TLS, else
            nothing listens beyond loopback). Files that change are in force for the next connection
    rights  rights of callers by certificate who may do less than their role, as ROLE/NAME or ROLE/BEGINNING*, each with
            a list: {worker/gpu-*: [run:ml.*], tailer/crm-*: [submit:crm.*]} (default: each has all rights of its role).
            Not for schedulers and gateways, which act for all functions
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    group: str = ""
    tls: Path | None = None
    rights: dict[str, list[str]] = {}

    @field_validator("rights")
    @classmethod
    def _are_rights(cls, given: dict[str, list[str]]) -> dict[str, list[str]]:
        try:
            read_grants(given)
        except InvalidRequest as error:
            raise ValueError(str(error)) from None
        return given


class LeasesConfig(BaseModel):
    """The leases of all parts (`leases.yaml`). With `heartbeat` alone the leases keep their default proportions to it.

    heartbeat    time between renewals by each holder of a lease; a break that is shorter restarts nothing
    round_trip   allowance for a request and its reply (default: 0.4 heartbeats)
    kill_margin  allowance from the kernel's signal to the end of a process (default: 0.4 heartbeats)
    rho          largest drift of a host's clock, as a share
    worker, scheduler, source   the leases (defaults 18, 28 and 36 s at 5 s); each must outlast the one before, or the
                 start is refused with the number to change
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    heartbeat: Seconds = 5.0
    round_trip: Seconds | None = None
    kill_margin: Seconds | None = None
    rho: float = 0.01
    worker: Seconds | None = None
    scheduler: Seconds | None = None
    source: Seconds | None = None

    def sizes(self) -> LeaseSizes:
        """Sizes of the leases, checked against the inequalities. Raises ConfigError naming the number to change."""
        usual = LeaseSizes.of_heartbeat(self.heartbeat)

        def chosen(name: str) -> float:
            value = getattr(self, name)
            return float(getattr(usual, name) if value is None else value)

        return LeaseSizes(
            self.heartbeat,
            chosen("round_trip"),
            chosen("kill_margin"),
            self.rho,
            chosen("worker"),
            chosen("scheduler"),
            chosen("source"),
        )


def unread(here: Path) -> Path | None:
    """A folder in `here`, or `here` itself, that looks like a configuration directory, for a user who named none. Not
    the examples of a clone: some of them need servers and functions that are nowhere."""
    for folder in (here / "configs", here):
        with contextlib.suppress(OSError):  # of one that this user may not enter nothing is known
            if folder.resolve() == EXAMPLES:
                continue
            if any((folder / name).is_file() for name in FILES) or any((folder / TAILERS).glob("*.yaml")):
                return folder
    return None


class ConfigDirectory:
    """A configuration directory, or none at all (`path` None): then everything is at its default."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is None:
            return
        try:
            entries = sorted(path.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            raise ConfigError(
                f"{path}: no such configuration directory; give --config a folder, or leave it out"
            ) from None
        except OSError as error:
            raise unreadable(path, error) from None
        known = {*FILES, TAILERS}
        no_tailers = all(entry.name != TAILERS for entry in entries)
        for entry in entries:
            if no_tailers and nearest(entry.name.lower(), [TAILERS]) and _holds_yaml(entry):
                raise ConfigError(f"{entry}: files of tailers lie in a folder {TAILERS}/; rename it")
            if entry.suffix in (".yaml", ".yml") and entry.name not in known:
                hint = meant(entry.name, FILES, f"expected {', '.join(FILES)} or a folder {TAILERS}/")
                raise ConfigError(f"{entry}: not a file that tailrace reads; {hint}")

    def read(self, name: str, model: type[M]) -> M:
        """The settings of one part: its file, or its defaults."""
        found = self.find(name, model)
        return model() if found is None else found

    def find(self, name: str, model: type[M]) -> M | None:
        """The settings in a file, where there is one."""
        path = None if self.path is None else self.path / name
        return load(path, model) if path is not None and _is_there(path) else None

    def tailers(self) -> list[Path]:
        """Paths of the tailer files, sorted by name."""
        folder = None if self.path is None else self.path / TAILERS
        if folder is None or not _is_there(folder) or not folder.is_dir():
            return []
        return listed(folder)

    def lease_sizes(self, heartbeat: float | None = None) -> LeaseSizes:
        """Sizes of the leases: of `heartbeat` when given, else of `leases.yaml`."""
        if heartbeat is not None:
            return LeaseSizes.of_heartbeat(heartbeat)
        return self.read("leases.yaml", LeasesConfig).sizes()


def _holds_yaml(folder: Path) -> bool:
    """Whether files of tailers may lie in a folder; False also for a file, or a folder that may not be listed."""
    try:
        return any(is_tailer_file(path) for path in folder.iterdir())
    except OSError:
        return False


def _is_there(path: Path) -> bool:
    """Whether something is at a path. Raises ConfigError where that cannot be known: it would count as absent."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unreadable(path, error) from None
    return True


def merged(model: M, **changes: Any) -> M:
    """A copy of settings with the changes that are not None."""
    return model.model_copy(update={name: value for name, value in changes.items() if value is not None})
