"""The command `tailrace bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..foundation.terminal import Json
from ..model.errors import InvalidRequest
from .catalogue import FAULTS, names

#: Kafka's clients.
CLIENTS = ("kafka-python", "confluent")


def bench(
    scenario: Annotated[
        str,
        typer.Option(
            "--scenario",
            metavar="NAME",
            help=names(),
        ),
    ] = "all",
    items: Annotated[
        float | None,
        typer.Option("--items", min=1, help="Size: items, seconds where it measures over time, or cuts of power_cut."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, max=100, help="Number of runs; their median counts.")] = 1,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Write the figures as SVG.")] = None,
    faults: Annotated[int | None, typer.Option("--faults", min=0, help="Number of faults (or restarts).")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the faults' plan; default: any.")] = None,
    heartbeat: Annotated[
        float, typer.Option("--heartbeat", min=0.2, max=60, help="Seconds; sets the leases in faults and restarts.")
    ] = 0.5,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Folder that keeps data, journals and logs of faults.")
    ] = None,
    children: Annotated[
        bool,
        typer.Option("--children/--no-children", help="In faults and restarts, let some functions start processes."),
    ] = True,
    kafka: Annotated[
        str,
        typer.Option(
            "--kafka",
            metavar="HOST:PORT",
            envvar="TAILRACE_BENCH_KAFKA",
            help="The broker of kafka and rivals; default: one is started, where Kafka is installed.",
        ),
    ] = "",
    brokers: Annotated[int, typer.Option("--brokers", help="Nodes of kafka_faults: 1 or 3.")] = 1,
    client: Annotated[
        str,
        typer.Option(
            "--client",
            metavar="NAME",
            help="Kafka's client, of kafka, rivals and delay --engine kafka: kafka-python or confluent.",
        ),
    ] = "kafka-python",
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Engine that holds the items. delay: sqlite, queue, redis, kafka; queue, latency, submit, bulk, due, "
            "backlog, plateau and host_faults: sqlite, postgres, redis; outbox, jobs, trees and beside_tree: sqlite, "
            "postgres; store_down and faults: postgres, redis; power_cut: sqlite, postgres, redis, redis-everysec; "
            "rivals: the last three, or kafka. stream: the engine that holds the state, sqlite or postgres.",
        ),
    ] = "",
    against: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="NAMES",
            help="Rivals to compare with; default: all. On Kafka: loop, faststream, faststream_batch, celery; on "
            "Redis: celery, dramatiq, taskiq, rq; on PostgreSQL: procrastinate.",
        ),
    ] = "",
    part: Annotated[
        str,
        typer.Option(
            "--part", metavar="NAME", help="Of rivals with an --engine: drain, latency (default: both) or chord."
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Measure this machine: real processes, the platform as you would run it. Exit code 1 when a target is not reached.

    `faults`, `restarts`, `kafka_faults`, `redis_stream_faults` and `host_faults` break the platform on purpose, on data
    of their own, and check that nothing is lost.
    """
    if brokers not in (1, 3):
        raise InvalidRequest(f"--brokers {brokers}: expected 1 or 3")
    if client not in CLIENTS:
        raise InvalidRequest(f"--client {client}: expected {' or '.join(CLIENTS)}")
    if scenario in FAULTS:
        from .faults.scenario import FaultOptions
        from .faults.scenario import main as break_it

        count = None if items is None else int(items)
        raise typer.Exit(
            break_it(FaultOptions(scenario, count, faults, seed, heartbeat, brokers, engine, data, children, as_json))
        )
    from .run import BenchOptions, main

    raise typer.Exit(main(BenchOptions(scenario, items, runs, as_json, plot, kafka, client, engine, against, part)))
