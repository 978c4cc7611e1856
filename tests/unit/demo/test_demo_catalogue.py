"""The catalogue misbehaves, and the same way in every run."""

from __future__ import annotations

import aiohttp
import pytest

from tailrace.demo.catalogue import SYMBOLS, Catalogue, Misbehaviour
from tailrace.demo.functions import SYMBOLS as SYMBOLS_OF_THE_FUNCTIONS

PATHS = [f"/lib/{number}.py" for number in range(2000)]


def answers(misbehaviour: Misbehaviour) -> list[int]:
    return [misbehaviour.answer(path, 0, ordinal) for ordinal, path in enumerate(PATHS)]


def test_the_same_seed_gives_the_same_answers() -> None:
    assert answers(Misbehaviour(seed=3)) == answers(Misbehaviour(seed=3))
    assert answers(Misbehaviour(seed=3)) != answers(Misbehaviour(seed=4))


def test_about_the_share_asked_for_fails_and_nothing_fails_for_ever() -> None:
    misbehaviour = Misbehaviour(failing=0.05)
    failing = [path for path in PATHS if misbehaviour.answer(path, 0, 0) == 503]
    assert 60 <= len(failing) <= 140
    assert {misbehaviour.answer(path, 2, 0) for path in PATHS} == {200}
    assert {misbehaviour.answer(path, 1, 0) for path in failing} == {200, 503}


def test_everything_is_throttled_for_a_while() -> None:
    given = answers(Misbehaviour(failing=0.0, throttle_from=100, throttle_until=140))
    assert given == [200] * 100 + [429] * 40 + [200] * 1860


async def test_over_http() -> None:
    misbehaviour = Misbehaviour(failing=1.0, throttle_from=1, throttle_until=2)
    catalogue = Catalogue(misbehaviour)
    await catalogue.start()
    try:
        async with aiohttp.ClientSession(catalogue.url) as session:
            body = {"path": "a.py", "symbols": ["x", "y"]}
            statuses = []
            while 200 not in statuses:
                async with session.post(SYMBOLS, json=body) as answer:
                    statuses.append(answer.status)
                    if answer.status == 429:
                        assert answer.headers["Retry-After"] == "1"
            assert statuses[:2] == [503, 429]
            async with session.get(SYMBOLS, params={"path": "a.py"}) as answer:
                assert await answer.json() == {"symbols": 2}
            async with session.get(SYMBOLS, params={"path": "b.py"}) as answer:
                assert answer.status == 404
            async with session.post(SYMBOLS, json=["not", "this"]) as answer:
                assert answer.status == 422
        assert (catalogue.modules, catalogue.symbols) == (1, 2)
        assert catalogue.answers[200] == 1
    finally:
        await catalogue.stop()


def test_functions_and_catalogue_agree_on_the_address() -> None:
    assert SYMBOLS == SYMBOLS_OF_THE_FUNCTIONS


@pytest.mark.parametrize("posts", [0, 1, 2])
def test_a_path_is_judged_by_itself(posts: int) -> None:
    misbehaviour = Misbehaviour()
    assert {misbehaviour.answer("a.py", posts, ordinal) for ordinal in range(50)} in ({200}, {503})
