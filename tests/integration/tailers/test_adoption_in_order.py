"""Adoption with `order: key`: a tailer that takes a stream over runs no item of a key beside or before one that still
runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.errors import Unavailable
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.tailers.takeover.succession import Succession

sys.path.insert(0, str(Path(__file__).parent))
from held_worker import LONG, SHORT, Begin, fill

KEYED: dict[str, Any] = {"order": "key", "key": {"record": True}}


async def two_keys_adopted(begin: Begin, stores: Any, eventually: Any) -> tuple[Any, Any]:
    """Has a tailer die while the first of two items of each of two keys run. Returns the place, and the tailer that
    adopted them."""
    place = await begin(LONG)
    await fill(stores, 4, keys=["a", "a", "b", "b"])
    first = await place.tailer(**KEYED)
    await eventually(lambda: sorted(place.worker.open) == ["t/0/0", "t/0/2"])
    await place.die(first)
    second = await place.tailer(**KEYED)
    await eventually(lambda: second.overview().state == "running")
    return place, second


async def test_with_order_what_was_adopted_ends_before_its_key_goes_on(
    begin: Begin, stores: Any, eventually: Any
) -> None:
    place, second = await two_keys_adopted(begin, stores, eventually)
    assert len(place.worker.started) == 2
    place.worker.end("t/0/0")
    place.worker.end("t/0/2")
    await eventually(lambda: sorted(place.worker.open) == ["t/0/1", "t/0/3"])
    place.worker.end("t/0/1", "t/0/3")
    await eventually(lambda: second.overview().settled == 4)


async def test_with_order_other_keys_pass_what_was_adopted(begin: Begin, stores: Any, eventually: Any) -> None:
    place = await begin(LONG)
    await fill(stores, 7, keys=["a", "b", "c", "d", "a", "e", "f"])
    first = await place.tailer(**KEYED)
    await eventually(lambda: len(place.worker.open) == 4)
    await place.die(first)
    second = await place.tailer(**KEYED)
    await eventually(lambda: second.overview().state == "running")
    # When one of four that run ends, then the next key's item starts beside the others, and none of a key that runs
    place.worker.end("t/0/1")
    await eventually(lambda: "t/0/5" in place.worker.open)
    place.worker.end("t/0/2")
    await eventually(lambda: "t/0/6" in place.worker.open)
    assert "t/0/4" not in place.worker.started
    place.worker.end("t/0/0")
    await eventually(lambda: "t/0/4" in place.worker.open)
    place.worker.end(*place.worker.open)
    await eventually(lambda: second.overview().settled == 7)
    assert sorted(place.worker.started) == [f"t/0/{n}" for n in range(7)]


async def test_with_order_what_was_adopted_and_fails_is_tried_again_before_its_key_goes_on(
    begin: Begin, stores: Any, parking: Any, eventually: Any
) -> None:
    place, second = await two_keys_adopted(begin, stores, eventually)
    for attempt in (2, 3):
        place.worker.end("t/0/0", ended=Ended(Outcome.RETRY, "no luck", after=0.0))
        await eventually(lambda: "t/0/0" in place.worker.open)
        assert place.worker.attempts[-1] == attempt
    place.worker.end("t/0/2")
    await eventually(lambda: sorted(place.worker.open) == ["t/0/0", "t/0/3"])
    place.worker.end(*place.worker.open)
    await eventually(lambda: list(place.worker.open) == ["t/0/1"])
    place.worker.end("t/0/1")
    await eventually(lambda: second.overview().settled == 4)
    assert (parking.items, second.overview().unaccounted) == ([], 0)


async def test_with_order_an_item_whose_end_was_forgotten_is_repeated_with_all_that_came_after_it(
    begin: Begin, stores: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a tailer whose checkpoint cannot be written: it dies when the first item of a key is done, the second runs
    place = await begin(LONG)
    await fill(stores, 3, keys=["a", "a", "b"])
    with monkeypatch.context() as patch:
        first = await place.tailer(**KEYED)
        await eventually(lambda: sorted(place.worker.open) == ["t/0/0", "t/0/2"])
        patch.setattr(stores.checkpoints, "commit", _unavailable)
        place.worker.end("t/0/0")
        await eventually(lambda: "t/0/1" in place.worker.open)
        await place.die(first)
    # When another one takes over, then the second is stopped before the first starts again, and follows it
    second = await place.tailer(**KEYED)
    await eventually(lambda: sorted(place.worker.open) == ["t/0/0", "t/0/2"])
    place.worker.end("t/0/0", "t/0/2")
    await eventually(lambda: "t/0/1" in place.worker.open)
    place.worker.end("t/0/1")
    await eventually(lambda: second.overview().settled == 3)
    assert [id_ for id_ in place.worker.started if id_ != "t/0/2"] == ["t/0/0", "t/0/1", "t/0/0", "t/0/1"]
    assert second.overview().unaccounted == 0


async def test_with_order_a_takeover_by_waiting_repeats_each_key_from_its_first(
    begin: Begin, stores: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await begin(SHORT)
    await fill(stores, 4, keys=["a", "a", "b", "b"])
    first = await place.tailer(**KEYED)
    await eventually(lambda: sorted(place.worker.open) == ["t/0/0", "t/0/2"])
    monkeypatch.setattr(Succession, "_adopt", _refused)
    await place.die(first)
    second = await place.tailer(**KEYED)
    await eventually(lambda: len(place.worker.started) == 4)
    assert sorted(place.worker.started[2:]) == ["t/0/0", "t/0/2"]
    place.worker.end("t/0/0", "t/0/2")
    await eventually(lambda: sorted(place.worker.open) == ["t/0/1", "t/0/3"])
    place.worker.end("t/0/1", "t/0/3")
    await eventually(lambda: second.overview().settled == 4)


async def _unavailable(*_: Any) -> None:
    raise Unavailable("the disk is full")


async def _refused(*_: Any) -> bool:
    return False
