"""The targets of each scenario, on a machine of two cores."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """A bound on one figure of a scenario."""

    figure: str
    bound: float
    unit: str
    at_least: bool
    label: str


ASKED: dict[str, tuple[Asked, ...]] = {
    "stream": (Asked("items_per_s", 50_000, "items/s", True, "stream: log → no-op, settled"),),
    "queue": (Asked("items_per_s", 30_000, "items/s", True, "queue: durable → no-op, acked"),),
    "queue-redis": (Asked("items_per_s", 25_000, "items/s", True, "queue on Redis: durable → no-op, acked"),),
    "queue-postgres": (Asked("items_per_s", 12_000, "items/s", True, "queue on PostgreSQL: durable → no-op, acked"),),
    "latency": (
        Asked("p50_ms", 2.0, "ms", False, "queue latency p50: submit → start"),
        Asked("p99_ms", 8.0, "ms", False, "queue latency p99"),
        Asked("log_p50_ms", 2.0, "ms", False, "log latency p50: append → start"),
        Asked("log_p99_ms", 8.0, "ms", False, "log latency p99"),
    ),
    **{
        f"latency-{engine}": (
            Asked("p50_ms", 3.0, "ms", False, f"queue on {name}, latency p50: submit → start"),
            Asked("p99_ms", 12.0, "ms", False, f"queue on {name}, latency p99"),
        )
        for engine, name in (("redis", "Redis"), ("postgres", "PostgreSQL"))
    },
    "submit": (
        Asked("single_per_s", 3_000, "/s", True, "submit: 64 calls at once, durable"),
        Asked("many_per_s", 50_000, "/s", True, "submit: submit_many, durable"),
    ),
    "bulk": (Asked("ratio", 2.0, "", False, "interactive p99 beside 10,000 bulk submissions, against alone"),),
    "due": (
        Asked("p95_s", 1.0, "s", False, "due: 10,000 a second, 95 % start within"),
        Asked("early", 0, "", False, "due: started before their time"),
    ),
    "jobs": (
        Asked("items_per_s", 10_000, "items/s", True, "jobs: items through a tree of two stages"),
        Asked("add_many_per_s", 30_000, "/s", True, "jobs: add_many, durable"),
        Asked("told_ms", 100.0, "ms", False, "jobs: from the last item's end to the client that waits"),
    ),
    "trees": (
        Asked("items_ratio", 1.5, "", False, "trees: a claim in a tree of 1,000,000 items, against one of 1,000"),
        Asked("open_ratio", 1.5, "", False, "trees: a claim beside 10,000 open trees, against beside one"),
    ),
    "beside_tree": (
        Asked("ratio", 2.0, "", False, "beside_tree: interactive p99 beside a tree of 1,000,000, against alone"),
    ),
    "backlog": (Asked("ratio", 1.5, "", False, "backlog: a claim with 10,000,000 waiting, against 10,000"),),
    "kinds": (
        Asked("ratio", 1.1, "", False, "kinds: full claims after 100,000 kinds were used once, against none"),
        Asked("lone_ratio", 1.1, "", False, "kinds: a lone item after 100,000 kinds were used once, against none"),
    ),
    "claims": (
        Asked("ratio", 1.5, "", False, "claims: full claims of 1,000 tenants' items, against one tenant's"),
        Asked(
            "next_ratio",
            1.5,
            "",
            False,
            "claims: one's next item behind 1,000,000 of another's, against an empty queue",
        ),
        Asked("next_claims", 1, "", False, "claims: claims until it comes"),
    ),
    "plateau": (Asked("growth", 1.05, "", False, "plateau: the last quarter's most, against the one before it"),),
    "power_cut": (Asked("lost", 0, "", False, "power cut of a durable server: accepted work lost"),),
    "power_cut-sqlite": (
        Asked("lost", 0, "", False, "power cut of the default engine: accepted work lost"),
        Asked("again", 0, "", False, "power cut of the default engine: settled work that ran again"),
        Asked("broken", 0, "", False, "power cut of the default engine: anything else"),
    ),
    "power_cut-redis-everysec": (Asked("lost_s", 1.0, "s", False, "power cut, appendfsync everysec: work lost"),),
    "downstream": (
        Asked("held_within_percent", 5.0, "%", False, "downstream: called beyond what it takes"),
        Asked("use_percent", 90.0, "%", True, "downstream: used of what it takes"),
        Asked("adapts_s", 10.0, "s", False, "downstream: adapts within, to half and back"),
        Asked("attempts_spent", 0, "", False, "downstream: attempts that were spent"),
    ),
    "neighbours": (
        Asked("ratio", 2.0, "", False, "neighbours: p99 beside a flood or a failing function, against alone"),
        Asked("share_off_percent", 5.0, "%", False, "neighbours: farthest from its share by weight"),
    ),
    "store_down": (
        Asked("accepted_share", 0.999, "", True, "store away 60 s of 5 min: accepted within 10 s"),
        Asked("lost", 0, "", False, "store away: lost"),
    ),
    "memory": (
        Asked("node_mb", 150, "MB", False, "node, 1,000,000 items waiting"),
        Asked("scheduler_mb", 150, "MB", False, "scheduler, 1,000,000 items waiting"),
    ),
    "idle": (
        Asked("idle_cpu_percent", 2.0, "% of a core", False, "idle CPU of `tailrace up`"),
        Asked("import_ms", 100, "ms", False, "`import tailrace`"),
    ),
    "outage": (
        Asked("items_copied", 1_000, "items", False, "outage of 60 s: copied into the delay service"),
        Asked("resumed_after_s", 60, "s", False, "after it: a tenth of what waited settled again"),
    ),
    "order": (),
    "poison": (Asked("ratio", 0.9, "", True, "one item in 100 failing: healthy throughput, ratio"),),
    "kafka-kafka-python": (
        Asked("items_per_s", 30_000, "items/s", True, "Kafka, kafka-python: topic → no-op, settled"),
        Asked("p50_ms", 10.0, "ms", False, "Kafka latency p50: append → start"),
        Asked("p99_ms", 40.0, "ms", False, "Kafka latency p99"),
    ),
    "kafka-confluent": (
        Asked("items_per_s", 40_000, "items/s", True, "Kafka, librdkafka: topic → no-op, settled"),
        Asked("p50_ms", 10.0, "ms", False, "Kafka latency p50: append → start"),
        Asked("p99_ms", 40.0, "ms", False, "Kafka latency p99"),
    ),
    "rivals": (),
    "limits": (
        Asked("ratio_on_off", 0.9, "", True, "limits: stream and queue with every kind of limit, against none"),
        Asked("core_items_per_s", 300_000, "/s", True, "limits, 1,000 functions × 100 tenants: core"),
        Asked("large_core_items_per_s", 200_000, "/s", True, "limits, 10,000 functions × 1,000 tenants: core"),
    ),
    "frontier": (
        Asked("us_per_item", 2.0, "µs", False, "frontier, 1,000,000 outstanding: per settled item"),
        Asked("mb", 100, "MB", False, "frontier, 1,000,000 outstanding: memory"),
    ),
    "objects": (
        Asked("items_per_s", 30_000, "items/s", True, "objects: jsonl lines of a folder → no-op, settled"),
        Asked("list_growth_mb", 50, "MB", False, "objects: memory that listing 1,000,000 keys adds"),
    ),
    "redis_stream": (Asked("items_per_s", 25_000, "items/s", True, "redis_stream: entries → no-op, settled"),),
    "outbox": (),
    "delay": (
        Asked("parks_per_s", 20_000, "items/s", True, "delay: parked, durably"),
        Asked("due_per_s", 20_000, "items/s", True, "delay: made due"),
    ),
}
