"""The configuration of a queue on PostgreSQL."""

from __future__ import annotations

from pydantic import Field

from ....foundation.config import Seconds
from ...postgres.server import PostgresOptions
from ..poller import INTERVAL


class PostgresQueueOptions(PostgresOptions):
    """A queue on PostgreSQL: its server, and how it is polled.

    poll_interval  seconds between looks of all nodes together while no node tells of a change
    """

    poll_interval: Seconds = Field(INTERVAL, ge=0.01, le=60)
