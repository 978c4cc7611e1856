"""Pools of a worker: the functions that it runs, and the pool of each. Functions declare a pool, the configuration may
move them, and a worker serves all pools or some. A function is in none of them if the worker lacks a label it requires.

A pool of critical functions, with workers that serve nothing else, is half of a dedicated queue: these executors wait
for its items, whatever else there is to do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...model.did_you_mean import meant
from ...model.errors import UserError
from ...model.function_spec import FunctionSpec
from ...model.labels import unmet


def allotted(
    declared: Mapping[str, FunctionSpec],
    moved: Mapping[str, Sequence[str]],
    serves: Sequence[str],
    unable: Collection[str] = (),
) -> dict[str, list[str]]:
    """The functions of each pool. `moved`: pool → functions that are in it despite their declaration; `serves`:
    the pools that count, empty: all; `unable`: functions that do not run here. Raises UserError for names that do not
    exist, and for contradictions."""
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
    able = {pool: [name for name in names if name not in unable] for pool, names in pools.items()}
    return {pool: names for pool, names in able.items() if names and (not serves or pool in serves)}


def unable(declared: Mapping[str, FunctionSpec], labels: Mapping[str, str]) -> dict[str, str]:
    """The functions that a worker with these labels cannot run, each with the first requirement that it does not
    meet."""
    found = {name: unmet(spec.requires, labels) for name, spec in declared.items() if spec.requires}
    return {name: why for name, why in found.items() if why}
