"""Exposition: histograms in both formats, exemplars in one, hostile names in labels, and bounded label sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.exposition import openmetrics_text, prometheus_text
from tailrace.model.histogram import LABEL_SETS, OTHER, Exemplar, Histograms
from tailrace.model.metrics import READ, START_DELAY, Sample, of_histograms

TRACE = "0af7651916cd43dd8448eb211c80319c"


def found(*delays: float) -> list[Sample]:
    histograms = START_DELAY.histograms()
    for delay in delays:
        bucket = histograms.record(("mail", "interactive"), delay)
        histograms.of(("mail", "interactive")).exemplars[bucket] = Exemplar(TRACE, delay, 1.5)
    return of_histograms(START_DELAY, histograms)


def test_a_histogram_counts_up_to_each_bound_and_has_a_sum() -> None:
    lines = prometheus_text(found(0.005, 0.006, 4.9, 5.0, 99_999.0)).splitlines()
    labels = 'function="mail",priority="interactive"'
    assert lines[1] == "# TYPE tailrace_start_delay_seconds histogram"
    assert f'tailrace_start_delay_seconds_bucket{{{labels},le="0.005"}} 1' in lines
    assert f'tailrace_start_delay_seconds_bucket{{{labels},le="5.0"}} 4' in lines
    assert f'tailrace_start_delay_seconds_bucket{{{labels},le="21600.0"}} 4' in lines
    assert f'tailrace_start_delay_seconds_bucket{{{labels},le="+Inf"}} 5' in lines
    assert f"tailrace_start_delay_seconds_sum{{{labels}}} 100008.911" in lines
    assert lines[-1] == f"tailrace_start_delay_seconds_count{{{labels}}} 5"
    assert not any("trace_id" in line for line in lines)


def test_openmetrics_has_an_example_of_a_bucket_and_an_end() -> None:
    counter = Sample(READ, (("tailer", "a"), ("kind", "log")), 7)
    lines = openmetrics_text([counter, *found(4.9)]).splitlines()
    assert "# TYPE tailrace_tailer_read counter" in lines
    assert 'tailrace_tailer_read_total{tailer="a",kind="log"} 7' in lines
    [line] = [line for line in lines if "trace_id" in line]
    assert line.endswith(f'le="5.0"}} 1 # {{trace_id="{TRACE}"}} 4.9 1.500')
    assert lines[-1] == "# EOF"


@given(st.text(st.characters(), min_size=1))
def test_a_hostile_name_stays_within_its_quotes(name: str) -> None:
    for text in (
        prometheus_text([Sample(READ, (("tailer", name),), 1)]),
        openmetrics_text([Sample(READ, (("tailer", name),), 1)]),
    ):
        text.encode()  # half a surrogate pair cannot be sent
        line = text.split("\n")[2]
        value = line.removeprefix('tailrace_tailer_read_total{tailer="').removesuffix('"} 1')
        assert '"' not in value.replace("\\\\", "").replace('\\"', "")


def test_ten_thousand_tenants_make_no_ten_thousand_series() -> None:
    # Given what is measured by a label that others invent
    histograms = Histograms((1.0, 2.0), ("function", "tenant"))
    for number in range(10_000):
        histograms.record(("mail", f"tenant-{number}"), 1.5)
    # Then there are as many as there may be, and all others are together
    assert len(histograms.by_labels) == LABEL_SETS + 1
    assert histograms.of(("mail", "tenant-9999")) is histograms.by_labels[OTHER, OTHER]
    assert histograms.by_labels[OTHER, OTHER].count == 10_000 - LABEL_SETS
    assert sum(counts.count for counts in histograms.by_labels.values()) == 10_000


def test_what_was_counted_elsewhere_is_added() -> None:
    one, other = Histograms((1.0, 2.0), ("function",)), Histograms((1.0, 2.0), ("function",))
    one.record_all(("mail",), [0.5, 1.5, 9.0])
    other.add(("mail",), one.by_labels[("mail",)].buckets, 11.0, {0: Exemplar(TRACE, 0.5, 1.0)})
    other.add(("mail",), [1, 0, 0, 5], 0.5, {})  # an executor of another version has other bounds
    assert other.by_labels[("mail",)].buckets == [2, 1, 1]
    assert other.by_labels[("mail",)].sum == 11.5
