"""Jobs that have due steps. Their trees take turns, one step each, so that no tree waits until a large one is done."""

from __future__ import annotations

from collections.abc import Iterable


class DueJobs:
    """The jobs that have due steps. Invariants:

    _trees    the jobs of each tree, and none without jobs; the tree whose turn is next is the first
    _tree_of  the tree of each job
    """

    def __init__(self, rows: Iterable[tuple[int, int]] = ()) -> None:
        self._trees: dict[int, set[int]] = {}
        self._tree_of: dict[int, int] = {}
        for tree, job in rows:
            self.add(tree, job)

    def add(self, tree: int, job: int) -> None:
        """Adds a job that has a due step. A tree that had none comes last."""
        self._tree_of[job] = tree
        self._trees.setdefault(tree, set()).add(job)

    def discard(self, job: int) -> None:
        """Removes a job that has nothing left to do. Harmless if it is not in."""
        tree = self._tree_of.pop(job, None)
        if tree is not None:
            self._trees[tree].discard(job)
            if not self._trees[tree]:
                del self._trees[tree]

    def turn(self) -> int:
        """A job of the tree whose turn it is; the tree then comes last. Parents come before their children."""
        tree, jobs = next(iter(self._trees.items()))
        del self._trees[tree]
        self._trees[tree] = jobs
        return min(jobs)

    def __contains__(self, job: int) -> bool:
        return job in self._tree_of

    def __len__(self) -> int:
        return len(self._tree_of)
