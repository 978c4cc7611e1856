"""procrastinate on PostgreSQL: two workers.

procrastinate --app tailrace.bench.rivals.postgres_procrastinate.app worker -c 10    one; two of them share the jobs
python -m tailrace.bench.rivals.postgres_procrastinate                               submits them (feeding.py)

Cost of a SIGKILL: nothing is lost. Jobs that the process had begun stay in doing until the periodic task below, which
its page on production recommends, finds that the worker's heartbeat is old.
"""

from __future__ import annotations

from procrastinate import App, JobContext, PsycopgConnector

from .feeding import RivalFeeder, main
from .settings import settings
from .work import noop as work
from .work import started

#: Jobs of one statement.
AT_ONCE = 1000

#: A connection for each of the ten jobs at once, and to fetch the next one: its pool has four otherwise.
POOL = 11

app = App(connector=PsycopgConnector(conninfo=settings().url, max_size=POOL))


@app.task(name="noop")
async def noop() -> None:
    """Does nothing."""
    work()


@app.task(name="start")
async def start(sent: float) -> None:
    """Notes its start."""
    started(sent)


@app.periodic(cron="*/10 * * * *")
@app.task(name="retry_stalled_jobs", queueing_lock="retry_stalled_jobs", pass_context=True)
async def retry_stalled_jobs(context: JobContext, timestamp: int) -> None:
    """Retries jobs that killed workers left behind."""
    for job in await app.job_manager.get_stalled_jobs():
        await app.job_manager.retry_job(job)


async def ready() -> None:
    """Makes its tables."""
    await app.schema_manager.apply_schema_async()


async def fill(count: int) -> None:
    """Submits many in one statement."""
    for first in range(0, count, AT_ONCE):
        await noop.batch_defer_async(*({} for _ in range(min(AT_ONCE, count - first))))


async def send(sent: float) -> None:
    """Submits one."""
    await start.defer_async(sent=sent)


async def left() -> int:
    """Number of jobs to do, and being done."""
    jobs = await app.job_manager.list_jobs_async(status="todo")
    return len([*jobs, *await app.job_manager.list_jobs_async(status="doing")])


if __name__ == "__main__":
    main(RivalFeeder(fill, send, left, app.open_async, ready))
