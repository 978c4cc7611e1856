"""The configuration of a queue on Redis."""

from __future__ import annotations

from pydantic import Field

from ....foundation.config import Seconds
from ...redis.server import RedisOptions
from ..poller import INTERVAL


class RedisQueueOptions(RedisOptions):
    """prefix    begins the name of every key: another one is another queue
    cluster   the server is a node of a Redis Cluster, whose other nodes are asked where the queue's slot is
    notify    nodes tell each other what they submitted
    poll_interval   seconds between looks at the queue of all nodes together, when nothing tells them
    """

    prefix: str = Field("tailrace", min_length=1, max_length=100, pattern=r"^[^{}\s]+$")
    cluster: bool = False
    notify: bool = True
    poll_interval: Seconds = Field(INTERVAL, ge=0.01, le=60)
