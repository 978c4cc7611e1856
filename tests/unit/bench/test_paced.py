"""The open loop of the latency scenarios: a wait counts from when an item was due to be sent."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from tailrace.bench.scenarios import WARM_UP, paced


async def test_who_is_held_up_holds_up_no_clock(tmp_path: Path) -> None:
    # Given a sender that stands still for a while in the middle of what is measured, as a client does whose store does
    starts, sent, held_up = tmp_path / "starts", [], 0.4

    async def send(due: float) -> None:
        sent.append(due)
        if len(sent) == WARM_UP + 5:
            time.sleep(held_up)  # noqa: ASYNC251 - that is what happens to it
        with starts.open("a") as file:
            file.write(f"{time.monotonic() - due:.6f}\n")

    # When so many are sent at a pace of 200 a second
    waits = await paced(send, 0.5, starts, lambda what, share: None, "test")

    # Then each was due in its turn, whatever came before it
    gaps = [after - before for before, after in itertools.pairwise(sent)]
    assert len(sent) == WARM_UP + 100
    assert all(abs(gap - 0.005) < 1e-6 for gap in gaps)
    # And all that should have been sent meanwhile waited, not the one that was under way alone
    late = sorted(waits)[-60:]
    assert late[-1] >= held_up
    assert sum(wait > held_up / 2 for wait in late) >= 30
