"""The scenarios of submission run whole, small."""

from pathlib import Path

import pytest

from tailrace.bench.flood import flood
from tailrace.bench.queue_engines import bulk_on, store_down_on
from tailrace.model.errors import TailraceError


def quiet(what: str, share: float) -> None:
    assert what and share >= 0


async def test_what_another_program_submits_in_bulk_is_measured_beside_the_urgent(tmp_path: Path) -> None:
    # Given two seconds of interactive submissions, beside ten thousand of another process
    figures = await bulk_on(tmp_path, 2, quiet, "sqlite")

    # Then each has its figure, and the program said how long it took
    assert figures["ratio"] == pytest.approx(figures["beside_bulk_p99_ms"] / figures["alone_p99_ms"])
    assert figures["bulk_s"] > 0


async def test_a_program_that_cannot_submit_is_told() -> None:
    # Given nobody who listens, when the program starts, then it ends instead of saying that it is ready
    with pytest.raises(TailraceError, match="ended"):
        async with flood("127.0.0.1:1", 10, patience=0.2):
            pass


@pytest.mark.usefixtures("redis_server")
async def test_nothing_accepted_is_lost_while_the_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a server of the queue that is away for four of eight seconds
    monkeypatch.delenv("TAILRACE_BENCH_REDIS", raising=False)

    # When submissions arrive all the while
    figures = await store_down_on(tmp_path, 160, quiet, "redis", down=4.0, period=8.0)

    # Then all are accepted, some by the gateway's disk, and each runs
    assert figures["accepted_share"] == 1.0 and figures["spooled"] > 0
    assert figures["lost"] == figures["ran_again"] == 0
