"""The token that this process shows where it has no certificate: in a file that TAILRACE_TOKEN_FILE names, read again
when it changes, or in TAILRACE_TOKEN."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..model.errors import ConfigError
from .certificates import Certificates, certificates, certificates_in

FILE_VARIABLE = "TAILRACE_TOKEN_FILE"
VARIABLE = "TAILRACE_TOKEN"
#: Characters of a token: gRPC bounds the metadata of a call at 8 KiB. And the most bytes of a file that are read.
LONGEST, FILE_BYTES = 7000, 8192


def shown_token(environment: Mapping[str, str] | None = None) -> str:
    """The token; empty: there is none. Raises ConfigError for a file that has none."""
    environment = os.environ if environment is None else environment
    if not (named := environment.get(FILE_VARIABLE)):
        return _plain(environment.get(VARIABLE, ""), VARIABLE)
    try:
        facts = Path(named).stat()
    except OSError as error:
        raise ConfigError(f"{FILE_VARIABLE} is {named}: {error.strerror}; expected a file with a token") from None
    return _read(named, (facts.st_mtime_ns, facts.st_ino))


@functools.lru_cache(maxsize=4)
def _read(path: str, stamp: tuple[int, int]) -> str:
    try:
        with Path(path).open("rb") as file:
            found = file.read(FILE_BYTES).decode(errors="replace").strip()
    except OSError as error:
        raise ConfigError(f"{FILE_VARIABLE} is {path}: {error.strerror}; expected a file with a token") from None
    if not found:
        raise ConfigError(f"{FILE_VARIABLE} is {path}, which is empty; expected a token")
    return _plain(found, f"{FILE_VARIABLE} ({path})")


def _plain(token: str, where: str) -> str:
    """Returns a token if it can stand in a header. The error does not repeat it."""
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(f"{where} holds no token; expected the text that `tailrace auth token create` showed")
    if len(token) > LONGEST:
        raise ConfigError(f"{where} holds {len(token)} characters: at most {LONGEST} fit into a call")
    return token


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials that a caller shows beyond this machine, where they are not those of its process. An empty
    `token` means the token in its environment, where it has no certificate."""

    certificates: Certificates | None
    token: str = field(default="", repr=False)

    @classmethod
    def given(cls, tls: str | Path | None, token: str | None) -> Credentials | None:
        """Credentials from the folder of certificates and the token that somebody gives; None: those of the process.
        Raises ConfigError for a token or certificates that cannot be shown."""
        if tls is None and token is None:
            return None
        found = certificates() if tls is None else certificates_in(Path(tls))
        if found is None:
            raise ConfigError("a token is shown over TLS only: tls is to name a folder with the fleet's ca.crt")
        return cls(found, _plain(token or "", "token"))
