"""The functions that a worker runs, and in which pool."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.errors import UserError
from tailrace.model.function_spec import FunctionSpec
from tailrace.runtime.rules.pools import allotted, unable

NAMES = ["charge", "greet", "refund", "report"]
DECLARED = {name: FunctionSpec(name, pool="slow" if name.startswith("re") else "default") for name in NAMES}


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["critical", "default", "slow"])),
    st.lists(st.sampled_from(["critical", "default", "slow"]), unique=True),
)
def test_each_function_is_in_one_pool_and_those_of_other_pools_are_somebody_else_s(
    moved: dict[str, str], serves: list[str]
) -> None:
    pools: dict[str, list[str]] = {}
    for name, pool in moved.items():
        pools.setdefault(pool, []).append(name)
    expected = {name: moved.get(name, spec.pool) for name, spec in DECLARED.items()}
    there = set(expected.values())
    if not set(serves) <= there:
        with pytest.raises(UserError, match="serves: there is no pool"):
            allotted(DECLARED, pools, serves)
        return
    found = allotted(DECLARED, pools, serves)
    assert {name: pool for pool, names in found.items() for name in names} == {
        name: pool for name, pool in expected.items() if not serves or pool in serves
    }
    assert sum(map(len, found.values())) == len({name for names in found.values() for name in names})


@pytest.mark.parametrize(
    ("moved", "why"),
    [
        ({"critical": ["chrage"]}, "no function 'chrage'; did you mean 'charge'"),
        ({"critical": ["charge"], "slow": ["charge"]}, "'charge' is in 'critical' and in 'slow'"),
    ],
)
def test_what_cannot_be_says_why(moved: dict[str, list[str]], why: str) -> None:
    with pytest.raises(UserError, match=why):
        allotted(DECLARED, moved, ())


def test_a_pool_has_one_isolation() -> None:
    alone = FunctionSpec("alone", pool="isolated", isolation="process")
    with pytest.raises(UserError, match="both isolations"):
        allotted(DECLARED | {"alone": alone}, {"default": ["alone"]}, ())


def test_what_cannot_run_here_is_in_no_pool() -> None:
    declared = DECLARED | {"train": FunctionSpec("train", pool="large", requires=("gpu", "python>=3.12"))}
    lacks = unable(declared, {"python": "3.12.1"})
    assert lacks == {"train": "gpu (it has no such label)"}
    assert "large" not in allotted(declared, {"slow": ["charge"]}, (), lacks)
    assert unable(declared, {"python": "3.9", "gpu": ""}) == {"train": "python>=3.12 (it has python=3.9)"}
    assert unable(declared, {"python": "3.12", "gpu": ""}) == {}
