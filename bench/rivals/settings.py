"""Settings that a rival's processes are told, through their environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

_PREFIX = "TAILRACE_RIVAL_"


class RivalSettings(NamedTuple):
    """tally: the folder of `tally.py`; url: the server of the queue, Redis or PostgreSQL, also of Celery beside Kafka;
    starts: the file that latencies are written to; bootstrap and topic: where Kafka's records are, group: who reads
    them. What a rival does not need is empty."""

    tally: str
    url: str = ""
    starts: str = ""
    bootstrap: str = ""
    topic: str = ""
    group: str = ""

    def environment(self) -> dict[str, str]:
        """As variables."""
        return {_PREFIX + name.upper(): value for name, value in self._asdict().items()}


def settings(variables: Mapping[str, str] = os.environ) -> RivalSettings:
    """Those of this process."""
    return RivalSettings(*(variables.get(_PREFIX + name.upper(), "") for name in RivalSettings._fields))
