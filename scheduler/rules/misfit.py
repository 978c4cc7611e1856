"""Misfit: an item whose payload the version of its function at one worker does not take, while another one is attached.

The scheduler sees no payload, so only a worker can tell. It does not run the item, and says so; the item goes back to
its source, free of charge, and comes again under a new fence (L9) to the versions that have not refused it. Once every
attached version has, it is fatal, as the end of any item that fits nobody is, and evidence for the clog rule.
A version is known by a word for its arguments. Of workers that say none, as of one version alone, nobody is asked
twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .placement import WorkerPool

#: Seconds after which an item that was refused comes again.
AGAIN = 1.0


def left_to_try(refused: Collection[str], attached: Collection[str]) -> bool:
    """Whether a version is attached that has not refused the item."""
    return not set(attached) <= set(refused)


def willing(pools: Sequence[WorkerPool], function: str, refused: Collection[str]) -> tuple[WorkerPool, ...]:
    """The pools of versions that have not refused; all of them, where there is no such one any more."""
    return tuple([pool for pool in pools if _version(pool, function) not in refused]) or tuple(pools)


def _version(pool: WorkerPool, function: str) -> str:
    versions: Mapping[str, str] = pool.worker.versions
    return versions.get(function, "")
