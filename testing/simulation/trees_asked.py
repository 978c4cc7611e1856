"""Trees of jobs against a plain model of the calls that were made: each tree has the added items, once, and nothing
else, and no call got an answer that it should not have got."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Set

from ...model.job import TreeRetry
from .grower import Grower
from .tree_rows import DONE, FAILED, SUCCEEDED, Grown, ItemRow

NumberOf = Callable[[str], int | None]


def asked(grower: Grower, grown: Grown, former: Grown | None, number_of: NumberOf, deleted: Set[str]) -> Iterator[str]:
    """Lines about errors of a tree that is over. `former`: the one whose failed items it has, or itself."""
    if grown.again:
        if former is not None:
            yield from _taken_along(grown, former)
    else:
        yield from _answered(grower, grown, grown.row.id in deleted)
        yield from _retried(grower, grown, grown.row.id in deleted)
    yield from _added(grower, grown, number_of)
    yield from _inner(grower, grown)


def _roots(grown: Grown) -> list[ItemRow]:
    """Items that were added, rather than made of results."""
    return [
        each for each in grown.items.values() if each.origin is None and not grown.plan.job[grown.name(each)].gather
    ]


def _added(grower: Grower, grown: Grown, number_of: NumberOf) -> Iterator[str]:
    """Lines about added items that are not there exactly once."""
    tree = grown.plan
    heard = [call for place, call in enumerate(tree.calls) if grower.calls[tree.k, place].done]
    calls = [] if grown.again else [n for call in heard for n in call.ns]
    surely, perhaps = Counter(calls), Counter[int]()
    for row in grown.items.values():
        n = number_of(row.id)
        for add in grower.items[n].adds if n is not None else ():
            (surely if row.state == SUCCEEDED and not grown.row.ending else perhaps)[add.n] += 1
    rows = _roots(grown)
    found = Counter(n for row in rows if (n := number_of(row.id)) is not None)
    strange = found - surely - perhaps
    if strange:
        yield f"has items that nobody added, or twice: {sorted(strange.elements())}"
    missing = surely - found
    unknown = len(rows) - found.total()  # they never ran
    if missing.total() > unknown or (missing and not grown.row.ending):
        yield f"misses items that were added: {sorted(missing.elements())}"
    if unknown and not grown.row.ending:
        yield f"has {unknown} items that never ran"
    if len(rows) > surely.total() + perhaps.total():
        yield f"has {len(rows)} items that were added, and {surely.total() + perhaps.total()} were asked for"


def _answered(grower: Grower, grown: Grown, deleted: bool) -> Iterator[str]:
    """Lines about answers that do not fit the seal of the tree, or its end."""
    tree = grown.plan
    seal = grower.seals[tree.k]
    for place, call in enumerate(tree.calls):
        told = grower.calls[tree.k, place]
        if told.done and told.word != len(call.ns):
            yield f"was given {len(call.ns)} items by call {place}, and said {told.word}"
        if told.done and seal.done and seal.at < told.began:
            yield f"took call {place}, which was made after its seal was answered"
        if not told.done and not grown.row.ending and told.at < seal.began:
            yield f"refused call {place} before anybody sealed it: {told.why}"
    if not seal.done and not deleted:
        yield f"was not sealed: {seal.why}"
    for place, ask in enumerate(tree.asks):
        if ask.what == "cancel" and grower.asks[tree.k, place].done and not grown.row.ending:
            yield "was cancelled, as it said, and is complete"


def _retried(grower: Grower, grown: Grown, deleted: bool) -> Iterator[str]:
    """Lines about a retry that did not take all failed items, or was refused though there were some."""
    told = grower.retries.get(grown.plan.k)
    if told is None:
        return
    failed = [each for each in grown.items.values() if each.state == FAILED]
    again = _tried_again(grown)
    said = told.word.items if isinstance(told.word, TreeRetry) else None
    if told.done and said != len(again):
        yield f"has {len(again)} failed items that are tried again, and its retry said {said}"
    if not told.done and failed and not deleted:
        yield f"has {len(failed)} failed items, and its retry was refused: {told.why}"


def _taken_along(grown: Grown, former: Grown) -> Iterator[str]:
    """Lines about items that failed in the former tree and are not here once, each in the job that it was in."""
    expected = Counter((former.name(each), each.item) for each in _tried_again(former))
    found = Counter((grown.name(each), each.origin) for each in grown.items.values() if each.origin in former.items)
    if found != expected:
        yield f"has of {former.row.id} {sorted(found.elements())}, and there failed {sorted(expected.elements())}"


def _tried_again(former: Grown) -> list[ItemRow]:
    """Failed items that another try of their tree has. A gathering item that failed after items that failed too is not
    among them: it is made anew of what these are by then."""
    failed = [each for each in former.items.values() if each.state == FAILED]
    anew = {name for each in failed for name in former.plan.behind(former.name(each)) if former.plan.job[name].gather}
    return [each for each in failed if former.name(each) not in anew]


def _inner(grower: Grower, grown: Grown) -> Iterator[str]:
    """Lines about additions that were refused to a run that had its item until it succeeded."""
    fences = grower.fences()
    for (id, fence), answers in grower.inner.items():
        row = grown.items.get(int(id, 16))
        if row is None or row.task != DONE or fences.get(id) != fence or grown.row.ending:
            continue
        for place, told in enumerate(answers):
            if not told.done:
                yield f"refused addition {place} of {id}, which had its item: {told.why}"
