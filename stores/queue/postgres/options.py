"""The configuration of a queue on PostgreSQL."""

from __future__ import annotations

from pydantic import Field

from ....foundation.config import Seconds
from ...postgres.server import PostgresOptions
from ..poller import INTERVAL


class PostgresQueueOptions(PostgresOptions):
    """poll_interval   seconds between looks at the queue of all nodes together, when nothing tells them"""

    poll_interval: Seconds = Field(INTERVAL, ge=0.01, le=60)
