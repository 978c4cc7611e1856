"""A scheduler's numbers: what Inspect says, under the names of the catalogue."""

from tailrace.model.exposition import prometheus_text
from tailrace.model.metrics import SCHEDULER, START_DELAY, USAGE_ITEMS, USAGE_TIME, USAGE_UNITS, WAIT
from tailrace.model.outcome import Outcome
from tailrace.scheduler.metrics import samples
from tailrace.wire.v1 import scheduler_pb2 as pb


def test_everything_that_inspect_counts_has_its_name() -> None:
    reply = pb.InspectReply(
        ready=True,
        lanes=[pb.Lane(function="f", priority=1, waiting=3, running=2)],
        workers=[pb.WorkerState(connected=True), pb.WorkerState()],
        tailers=[pb.TailerState(connected=True)],
        clogged=[pb.Clogged(function="g", state="frozen")],
        downstreams=[pb.DownstreamState(downstream="d", state="open", rate=4.5, throttled=3, shrank=2)],
        retries=[pb.RetryState(function="f", rate=1.5, waiting=6)],
        units=[pb.UnitState(downstream="d", unit="tokens", left=-5.0, burst=10.0, rate=2.0, waiting=1)],
        unknown_downstreams=[pb.ReasonCount(reason="f", count=9)],
        outcomes=[pb.OutcomeCount(outcome=Outcome.SUCCESS, count=7), pb.OutcomeCount(outcome=Outcome.HELD, count=1)],
        reasons=[pb.ReasonCount(reason="no_worker", count=1)],
    )
    found = samples(reply)
    usage = {USAGE_ITEMS, USAGE_TIME, USAGE_UNITS}
    assert {sample.metric for sample in found} == set(SCHEDULER) - {START_DELAY, WAIT} - usage
    assert prometheus_text(found).splitlines()[2::3][:3] == [
        "tailrace_scheduler_ready 1",
        "tailrace_scheduler_workers 1",
        "tailrace_scheduler_tailers 1",
    ]
    text = prometheus_text(found).splitlines()
    assert 'tailrace_scheduler_waiting{function="f",priority="user_visible"} 3' in text
    assert 'tailrace_scheduler_clogged{function="g",state="frozen"} 1' in text
    assert 'tailrace_downstream_rate{downstream="d",tenant=""} 4.5' in text
    assert 'tailrace_downstream_throttled_total{downstream="d",tenant=""} 3' in text
    assert 'tailrace_downstream_unknown_total{function="f"} 9' in text
    assert 'tailrace_retries_waiting{function="f"} 6' in text
    assert 'tailrace_scheduler_ended_total{outcome="held"} 1' in text
