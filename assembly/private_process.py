"""Sets up a process that serves: with the run directory of its user, and with files that are private to that user."""

from __future__ import annotations

import contextlib
import os
import resource

from ..foundation.certificates import VARIABLE, certificates
from ..foundation.peer_check import GRANTS
from ..foundation.run_dir import RunDir
from ..model.grants import read_grants
from ..wire.shared_secret import ENTRY, CallerCheck
from .settings import AccessConfig, ConfigDirectory

#: Files of parts that keep data cannot be read or written by others. A worker's files are its functions' own matter.
UMASK = 0o077
#: Open files: a thousand connections for each listener of a node, and the stores' own.
FILES = 16_384
#: Parts that serve nobody and write nothing of their own.
WITHOUT = ("metrics", "worker")

_held: list[RunDir] = []  # until the process ends: the lock keeps cleaners of temporary folders out


def enter(part: str, directory: ConfigDirectory) -> None:
    """Sets this process up before it makes files and listeners: from now on they ask for the secret. Raises
    ConfigError."""
    use_certificates(directory)
    if part in WITHOUT:
        return
    os.umask(UMASK)
    allow_files()
    run_dir = run_dir_of(directory)
    ENTRY.set(CallerCheck(run_dir.open(), run_dir.group))
    _held.append(run_dir)


def use_certificates(directory: ConfigDirectory) -> None:
    """Takes the certificates that the configuration names, for this process and those that it starts, and the rights of
    others. Raises ConfigError for files that cannot be used."""
    config = directory.read("access.yaml", AccessConfig)
    GRANTS.set(read_grants(config.rights))
    if (folder := config.tls) is not None:
        os.environ[VARIABLE] = str(folder.absolute())
    if (found := certificates()) is not None:
        found.now()


def allow_files() -> None:
    """Raises the limit of open files of this process, as far as it may, to the number that listeners need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # such as macOS' own bound below its hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def run_dir_of(directory: ConfigDirectory) -> RunDir:
    """The run directory, shared with the group that the configuration names."""
    return RunDir(group=directory.read("access.yaml", AccessConfig).group)
