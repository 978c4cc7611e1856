"""The hop table of docs/delay-service.md agrees with the ladder and the retry policy.

python tests/unit/delay_service/test_hop_table.py       prints the table to be put there
"""

from __future__ import annotations

from pathlib import Path

from tailrace.delay_service.rules.ladder import Ladder
from tailrace.model.retry import Retry, delay_after
from tailrace.model.units import duration_text

PAGE = Path(__file__).parents[3] / "docs" / "delay-service.md"
HEADER = "| attempt failed | wanted delay | rungs | it comes back after | error |"
#: The default policy, without the random fifth.
POLICY = Retry(jitter=0)
ATTEMPTS = range(1, 15)


def chain(delay: float) -> list[float]:
    """The waits of an item that is parked for so long, when every move is prompt."""
    ladder, now, waits = Ladder(), 0.0, list[float]()
    latest = ladder.latest(delay, now)
    while (rung := ladder.next_rung(delay, latest, now)) is not None:
        waits.append(ladder.rungs[rung])
        now += ladder.rungs[rung]
    return waits


def hop_table() -> list[str]:
    lines = [HEADER, "|---|---|---|---|---|"]
    for attempt in ATTEMPTS:
        delay = delay_after(POLICY, attempt)
        waits = chain(delay)
        counts = {wait: waits.count(wait) for wait in waits}
        rungs = ", ".join(duration_text(wait) + (f" × {n}" if n > 1 else "") for wait, n in counts.items())
        late = sum(waits) - delay
        error = f"{duration_text(late)} ({100 * late / delay:.1f} %)" if late else "none"
        lines.append(f"| {attempt} | {duration_text(delay)} | {rungs} | {duration_text(sum(waits))} | {error} |")
    return lines


def test_the_page_has_the_table_that_the_ladder_makes() -> None:
    lines = PAGE.read_text().splitlines()
    assert HEADER in lines, "the hop table is gone from docs/delay-service.md"
    begin = lines.index(HEADER)
    table = hop_table()
    assert lines[begin : begin + len(table)] == table, f"python {Path(__file__).name} prints the table"
    assert not lines[begin + len(table)].startswith("|")


def test_a_chain_is_never_early_and_its_error_has_a_bound() -> None:
    for attempt in ATTEMPTS:
        delay = delay_after(POLICY, attempt)
        assert delay <= sum(chain(delay)) <= Ladder().latest(delay, 0.0)


if __name__ == "__main__":
    print("\n".join(hop_table()))
