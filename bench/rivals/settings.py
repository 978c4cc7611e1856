"""Settings of a rival's processes, passed through their environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

_PREFIX = "TAILRACE_RIVAL_"


class RivalSettings(NamedTuple):
    """Settings of a rival. tally: the folder of `tally.py`; url: the server of the queue, Redis or PostgreSQL, also of
    Celery beside Kafka; starts: the file that latencies are written to; bootstrap, topic and group: Kafka's address,
    the topic of the records, and the group that reads them. Settings that a rival does not need are empty."""

    tally: str
    url: str = ""
    starts: str = ""
    bootstrap: str = ""
    topic: str = ""
    group: str = ""

    def environment(self) -> dict[str, str]:
        """The settings as environment variables."""
        return {_PREFIX + name.upper(): value for name, value in self._asdict().items()}


def settings(variables: Mapping[str, str] = os.environ) -> RivalSettings:
    """Settings of this process, from its environment."""
    return RivalSettings(*(variables.get(_PREFIX + name.upper(), "") for name in RivalSettings._fields))
