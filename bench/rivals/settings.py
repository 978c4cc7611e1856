"""What a rival's processes are told, through their environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

_PREFIX = "TAILRACE_RIVAL_"


class Settings(NamedTuple):
    """bootstrap and topic: where the records are; group: the consumer group; tally: the folder of `tally.py`; redis:
    the URL of Celery's broker, empty where there is none."""

    bootstrap: str
    topic: str
    group: str
    tally: str
    redis: str = ""

    def environment(self) -> dict[str, str]:
        """As variables."""
        return {_PREFIX + name.upper(): value for name, value in self._asdict().items()}


def settings(variables: Mapping[str, str] = os.environ) -> Settings:
    """Those of this process."""
    return Settings(*(variables.get(_PREFIX + name.upper(), "") for name in Settings._fields))
