"""RQ on Redis: a pool of two workers that run each job in their own process. Its usual worker forks one for each job.

rq worker-pool --num-workers 2 --worker-class rq.SimpleWorker --config tailrace.bench.rivals.redis_rq    runs the jobs
python -m tailrace.bench.rivals.redis_rq                                                                 submits them

Cost of a SIGKILL: nothing is lost, since the job may be tried again: once it has been silent for its time limit and a
minute, it is found in the registry of started jobs.
"""

from __future__ import annotations

from redis import Redis
from rq import Queue, Retry

from . import work
from .feeding import RivalFeeder, main
from .settings import settings

#: The names that its command reads from this module.
REDIS_URL = settings().url
QUEUES = ["default"]

queue = Queue(connection=Redis.from_url(REDIS_URL))
#: Without one, a job whose worker was killed is moved to the failed ones.
RETRY = Retry(max=3)
#: Jobs of one round trip.
AT_ONCE = 500


async def fill(count: int) -> None:
    """Submits many in one pipeline; nobody reads the results of a no-op, so none is kept."""
    for first in range(0, count, AT_ONCE):
        jobs = [Queue.prepare_data(work.noop, result_ttl=0, retry=RETRY) for _ in range(min(AT_ONCE, count - first))]
        queue.enqueue_many(jobs)


async def send(sent: float) -> None:
    """Submits one."""
    queue.enqueue(work.started, sent, result_ttl=0, retry=RETRY)


async def left() -> int:
    """Number of jobs in the list, and begun."""
    return int(queue.count) + int(queue.started_job_registry.count)


if __name__ == "__main__":
    main(RivalFeeder(fill, send, left))
