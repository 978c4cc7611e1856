"""The configuration of a queue on Redis."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from ....foundation.config import Seconds
from ...redis.options import RedisStoreOptions, refuse_on_a_cluster
from ..poller import INTERVAL


class RedisQueueOptions(RedisStoreOptions):
    """A queue on Redis: its server, its keys (`prefix`), and how it is polled.

    cluster        the server is a node of a Redis Cluster, which tells the node that has the queue's slot
    notify         nodes tell each other when they submit
    poll_interval  seconds between looks of all nodes together while no node tells of a change
    """

    cluster: bool = False

    @model_validator(mode="after")
    def _fits_a_cluster(self) -> Self:
        refuse_on_a_cluster(self, cluster=self.cluster)
        return self

    notify: bool = True
    poll_interval: Seconds = Field(INTERVAL, ge=0.01, le=60)
