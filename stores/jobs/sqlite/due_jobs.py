"""Due jobs, with which something is to be done: their trees take turns, one step of each, so that none waits until a
large one is done."""

from __future__ import annotations

from collections.abc import Iterable


class DueJobs:
    """The jobs that something is to be done with. Invariants:

    _trees    the jobs of each tree, of which the one whose turn comes next is the first; none is without jobs
    _tree_of  the tree of each of them
    """

    def __init__(self, rows: Iterable[tuple[int, int]] = ()) -> None:
        self._trees: dict[int, set[int]] = {}
        self._tree_of: dict[int, int] = {}
        for tree, job in rows:
            self.add(tree, job)

    def add(self, tree: int, job: int) -> None:
        """Something is to be done with a job. A tree that had nothing comes last."""
        self._tree_of[job] = tree
        self._trees.setdefault(tree, set()).add(job)

    def discard(self, job: int) -> None:
        """There is nothing more to be done with it. Harmless when there was nothing."""
        tree = self._tree_of.pop(job, None)
        if tree is not None:
            self._trees[tree].discard(job)
            if not self._trees[tree]:
                del self._trees[tree]

    def turn(self) -> int:
        """A job of the tree whose turn it is, which comes last then: parents before their children."""
        tree, jobs = next(iter(self._trees.items()))
        del self._trees[tree]
        self._trees[tree] = jobs
        return min(jobs)

    def __contains__(self, job: int) -> bool:
        return job in self._tree_of

    def __len__(self) -> int:
        return len(self._tree_of)
