"""The configuration of a queue on Redis."""

from __future__ import annotations

from pydantic import Field

from ....foundation.config import Seconds
from ...redis.server import RedisOptions
from ..poller import INTERVAL


class RedisQueueOptions(RedisOptions):
    """A queue on Redis: its server, its keys, and how it is polled.

    prefix         beginning of the name of every key; another prefix is another queue
    cluster        the server is a node of a Redis Cluster, which tells the node that has the queue's slot
    notify         nodes tell each other when they submit
    poll_interval  seconds between looks of all nodes together while no node tells of a change
    """

    prefix: str = Field("tailrace", min_length=1, max_length=100, pattern=r"^[^{}\s]+$")
    cluster: bool = False
    notify: bool = True
    poll_interval: Seconds = Field(INTERVAL, ge=0.01, le=60)
