"""Trees of jobs with every process real: complete exactly once, whichever process was killed."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from scenes import commands

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.bench.process import free_ports

FUNCTIONS = str(Path(__file__).parent / "job_functions.py")
ITEMS = 400
KEY = b"k" * 32
SECRET = "whsec_" + base64.b64encode(KEY).decode()


#: Where it tells nothing that the laws of jobs do not, which both pass (tests/conformance/test_*_jobs.py).
ON_BOTH = pytest.mark.parametrize(
    "platform", ["sqlite", pytest.param("postgres", marks=pytest.mark.long(minutes=0.08))], indirect=True
)


@pytest.fixture(params=["sqlite", "postgres"])
async def platform(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Platform]:
    config = tmp_path / "config"
    config.mkdir()
    (config / "gateway.yaml").write_text(f"callbacks: {{secrets: [{SECRET}], allow: [127.0.0.0/8]}}\n")
    if request.param == "postgres":
        url, schema = (request.getfixturevalue(f"postgres_{name}") for name in ("server", "schema"))
        (config / "stores.yaml").write_text(
            f'queue: {{engine: postgres, url: "{url}", schema: {schema}}}\ndurability: relaxed\n'
        )
    hearers = [tmp_path / f"{event}.yaml" for event in ("item_failed", "job_completed")]
    for file in hearers:
        file.write_text(f"name: {file.stem}\nsource: {{kind: log, stream: jobs.{file.stem}}}\nfunction: hear_of\n")
    gateway = f"127.0.0.1:{free_ports(1)[0]}"
    running = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        config,
        heartbeat=0.3,
        environment={"TAILRACE_TEST_JOURNAL": str(tmp_path / "journal"), "TAILRACE_TEST_GATEWAY": gateway},
        ports={"gateway": gateway},
        worker={"slots": 20, "executors": 2},
        tailers=hearers,
    )
    await running.start()
    yield running
    await running.stop()


async def test_a_tree_is_complete_exactly_once_though_worker_and_node_are_killed(
    platform: Platform, tmp_path: Path
) -> None:
    async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as client:
        # Given a tree of two stages, and a sum of it all
        job = client.job("squares", "square")
        ones = job.then("add_one", final=True)
        ones.gather("total")
        assert await job.add_many({"n": n} for n in range(ITEMS)) == ITEMS
        assert (await job.seal()).jobs[0].sealed
        # When the worker is killed in the middle, and the node too
        for part, share in (("worker", 4), ("node", 2)):
            await reached(tmp_path / "journal", ITEMS // share)
            os.kill(platform.pids()[part], signal.SIGKILL)
        # Then every item has its result, once, and the sum is right
        status = await job.wait(90)
        assert [(each.succeeded, each.failed) for each in status.jobs] == [(ITEMS, 0), (ITEMS, 0), (1, 0)]
        results = [each async for each in job.outcomes()]
        by_job = {name: [int(each.result) for each in results if each.job == name] for name in ("add_one", "total")}
        assert sorted(by_job["add_one"]) == [n * n + 1 for n in range(ITEMS)]
        assert by_job["total"] == [sum(n * n + 1 for n in range(ITEMS))]
        # And what is kept of it agrees
        assert "every item is where it should be" in command(platform, "audit", job.id)
        assert "└ total (gathers): complete" in command(platform, "show", job.id, "--tree")


async def test_results_that_fit_no_payload_are_gathered_by_pages_or_as_a_list(platform: Platform) -> None:
    async with tailrace.AsyncClient(platform.gateway_address) as client:
        # Given results that fit no payload together
        job = client.job("padded", "pad", key="padded")
        for function in ("total_by_pages", "total_by_pages_in_thread", "total_of_list"):
            job.gather(function)
        await job.add_many({"n": n} for n in range(30))
        await job.seal()
        # When they are gathered, then each function has all of them
        status = await job.wait(60)
        assert [(each.name, each.failed) for each in status.jobs if each.failed] == []
        assert [each async for each in job.results()] == [[30, sum(range(30))]] * 3


async def reached(journal: Path, count: int) -> None:
    """Waits until so many items of the first job have run."""
    async with asyncio.timeout(60):
        while True:
            lines = journal.read_text().splitlines() if journal.exists() else []
            if len({line for line in lines if line.startswith("square")}) >= count:
                return
            await asyncio.sleep(0.02)


def command(platform: Platform, *words: str, of: str = "job") -> str:
    return commands.tailrace(of, *words, "--gateway", platform.gateway_address, check=True).stdout


@ON_BOTH
async def test_what_makes_no_sense_is_refused_and_a_job_can_be_paused_and_cancelled(platform: Platform) -> None:
    async with tailrace.AsyncClient(platform.gateway_address) as client:
        refused = {
            "no function 'nobody'": client.job("x", "nobody"),
            "keeps no results": client.chain("x", "tells_nothing", "add_one"),
            "needs b too": client.chain("x", "square", "two_arguments"),
        }
        for why, job in refused.items():
            with pytest.raises(tailrace.UserError, match=why):
                await job.seal()
        job = client.job("x", "square")
        with pytest.raises(tailrace.InvalidPayload):
            await job.add(n="no number")
        with pytest.raises(tailrace.InvalidRequest, match="is made, and its tree is fixed"):
            job.then("add_one")
        assert await job.pause() == "done"
        assert await job.add_many([{"n": 1}, {"n": 2}, {"n": 3}]) == 3
        with pytest.raises(TimeoutError, match="3 of its items have not ended"):
            await job.wait(0.3)
        assert await job.cancel() == "done"
        with pytest.raises(tailrace.WorkloadFailed, match="cancel asked for by"):
            await job.wait(10)


@ON_BOTH
async def test_a_failed_item_fails_its_tree_where_the_policy_says_so(platform: Platform) -> None:
    async with tailrace.AsyncClient(platform.gateway_address) as client:
        for policy, state in (("continue", "complete"), ("fail_tree", "failed")):
            job = client.job("odd", "odd_only", policy=policy)
            await job.add_many({"n": n} for n in range(10))
            await job.seal()
            if state == "failed":
                with pytest.raises(tailrace.WorkloadFailed, match="of its items failed"):
                    await job.wait(30)
            else:
                assert (await job.wait(30)).failed == 5
            known = client.known_job(job.id)
            assert (await known.status()).state == state
        again = await job.retry()
        with pytest.raises(tailrace.WorkloadFailed):
            await again.wait(30)
        with pytest.raises(tailrace.InvalidRequest, match="no job"):
            await client.known_job("nobody").retry()


@ON_BOTH
async def test_a_dead_letter_of_an_open_job_is_redriven_in_its_tree(platform: Platform) -> None:
    async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as client:
        # Given an open job of which one item failed
        job = client.job("odd", "odd_only")
        job.then("add_one", final=True)
        await job.add(n=2)
        async with asyncio.timeout(30):
            while (await job.status()).failed < 1:
                await asyncio.sleep(0.05)
        # When its letter is redriven twice, from the command line
        for expected in (1, 2):
            assert "redriven: 1" in command(platform, "redrive", "--function", "odd_only", of="dead")
            async with asyncio.timeout(30):
                while (status := await job.status()).failed < 1:
                    await asyncio.sleep(0.05)
            # Then it ran again in its tree: it failed again, and counts once
            assert (status.pending, status.failed) == (0, 1), expected
        await job.add(n=3)
        await job.seal()
        status = await job.wait(30)
        assert [(each.succeeded, each.failed) for each in status.jobs] == [(1, 1), (1, 0)]
        assert "every item is where it should be" in command(platform, "audit", job.id)


@ON_BOTH
async def test_a_job_bounds_how_often_an_item_fails_where_its_function_would_go_on(platform: Platform) -> None:
    async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as client:
        job = client.job("stubborn", "never", max_failures_per_item=2)
        job.then("add_one", max_failures_per_item=1)
        await job.add(n=1)
        await job.seal()
        status = await job.wait(30)
        assert [(each.succeeded, each.failed) for each in status.jobs] == [(0, 1), (0, 0)]
        shown = command(platform, "list", "--function", "never", "--json", of="dead")
        assert "(attempt 2 of 2, the last)" in shown
        for wrong in (-1, 10_001):
            with pytest.raises(tailrace.InvalidRequest, match="max_failures_per_item"):
                await client.job("stubborn", "never", max_failures_per_item=wrong).seal()


async def test_subscribers_hear_of_every_item_and_job_though_the_node_is_killed(
    platform: Platform, tmp_path: Path
) -> None:
    async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as client:
        # Given a tree that tells of what fails and of jobs that are complete, and tailers that hear of it
        job = client.job("odd", "odd_only", events=["item_failed", "job_completed"])
        job.then("add_one", final=True)
        assert await job.add_many({"n": n} for n in range(100)) == 100
        await job.seal()
        # When the node is killed while it runs
        async with asyncio.timeout(60):
            while (await job.status()).failed < 10:
                await asyncio.sleep(0.02)
        os.kill(platform.pids()["node"], signal.SIGKILL)
        status = await job.wait(60)
        assert [(each.succeeded, each.failed) for each in status.jobs] == [(50, 50), (50, 0)]
        # Then each failure and each end was heard of, and nothing else
        expected = {f"{job.id}/odd_only:job_completed", f"{job.id}/add_one:job_completed"}
        async with asyncio.timeout(60):
            while True:
                lines = (tmp_path / "journal").read_text().splitlines() if (tmp_path / "journal").exists() else []
                heard = {line.split()[1] for line in lines if line.startswith("heard")}
                if len(heard) >= 52:
                    break
                await asyncio.sleep(0.05)
        assert {id for id in heard if "/" in id} == expected
        assert len(heard) == 52


@ON_BOTH
async def test_a_run_adds_items_to_its_sealed_job_and_behind_it_and_its_next_attempt_none_again(
    platform: Platform,
) -> None:
    async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as client:
        job = client.job("growing", "grow")
        job.then("add_one", final=True)
        await job.add(depth=0)
        await job.seal()
        status = await job.wait(60)
        assert [(each.succeeded, each.failed) for each in status.jobs] == [(15, 0), (30, 0)]
        assert "every item is where it should be" in command(platform, "audit", job.id)


@ON_BOTH
async def test_the_end_of_a_job_is_told_to_a_function_and_to_an_address(platform: Platform, tmp_path: Path) -> None:
    # Given somebody who listens
    heard: asyncio.Queue[tuple[str, str, bytes]] = asyncio.Queue()

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        content = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + body
        signature = base64.b64encode(hmac.new(KEY, content, hashlib.sha256).digest()).decode()
        await heard.put((request.headers["webhook-signature"], f"v1,{signature}", body))
        return web.Response()

    application = web.Application()
    application.router.add_post("/done", take)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}/done"
    try:
        async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as client:
            # When jobs are over
            jobs = [client.job("telling", "square", on_done=on_done) for on_done in ("hear", address)]
            for job in jobs:
                await job.add_many({"n": n} for n in range(3))
                await job.seal()
                await job.wait(30)
            # Then they hear of it
            async with asyncio.timeout(30):
                signature, expected, body = await heard.get()
                while f"told {jobs[0].id}:done complete 3" not in (tmp_path / "journal").read_text():
                    await asyncio.sleep(0.05)
            assert signature == expected
            assert f'"{jobs[1].id}:done"'.encode() in body
            # And so do they of workloads that are in no job, one that succeeds and one that does not
            won = await client.submit("square", n=3, on_done="hear")
            lost = await client.submit("odd_only", n=2, on_done=address)
            async with asyncio.timeout(30):
                while f"told {won.id}:done success " not in (tmp_path / "journal").read_text():
                    await asyncio.sleep(0.05)
                signature, expected, body = await heard.get()
            event = json.loads(body)
            assert signature == expected
            assert (event["workload"], event["state"]) == (lost.id, "fatal_failure")
            assert "2 is even" in event["why"]
            for why, on_done in {
                "no function 'nobody'": "nobody",
                "no public address": "https://10.0.0.1/",
                "needs b too": "two_arguments",
            }.items():
                with pytest.raises(tailrace.UserError, match=why):
                    await client.job("telling", "square", on_done=on_done).seal()
                with pytest.raises(tailrace.UserError, match=why):
                    await client.submit("square", n=1, on_done=on_done)
    finally:
        await runner.cleanup()
