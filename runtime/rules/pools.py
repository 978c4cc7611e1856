"""Pools of a worker: which functions it runs, and in which pool. Functions declare a pool, the configuration may move
them, and a worker serves all pools or some.

A pool of critical functions with workers that serve nothing else is a dedicated queue's half: whatever else there
is to do, these executors wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...model.did_you_mean import meant
from ...model.errors import UserError
from ...model.function_spec import FunctionSpec


def allotted(
    declared: Mapping[str, FunctionSpec], moved: Mapping[str, Sequence[str]], serves: Sequence[str]
) -> dict[str, list[str]]:
    """The functions of each pool. `moved`: pool → functions that are in it whatever their declaration says; `serves`:
    the pools that count, empty: all. Raises UserError for what cannot be."""
    pool_of = {name: spec.pool for name, spec in declared.items()}
    taken: dict[str, str] = {}
    for pool, names in moved.items():
        for name in names:
            if name not in declared:
                nearest = meant(name, declared, f"they have {', '.join(sorted(declared))}")
                raise UserError(f"pools.{pool}: this worker's modules have no function {name!r}; {nearest}")
            if taken.setdefault(name, pool) != pool:
                raise UserError(f"pools: {name!r} is in {taken[name]!r} and in {pool!r}: leave one of them out")
            pool_of[name] = pool
    pools: dict[str, list[str]] = {}
    for name, pool in pool_of.items():
        first = declared[pools.setdefault(pool, [name])[0]]
        if first.isolation != declared[name].isolation:
            raise UserError(
                f"pool {pool!r} has functions of both isolations: {first.name!r} is {first.isolation}, {name!r} is "
                f"{declared[name].isolation}; give one another pool"
            )
        if name != first.name:
            pools[pool].append(name)
    for pool in serves:
        if pool not in pools:
            raise UserError(f"serves: there is no pool {pool!r}; expected one of {', '.join(sorted(pools))}")
    return {pool: names for pool, names in pools.items() if not serves or pool in serves}
