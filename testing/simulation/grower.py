"""A client that makes trees of jobs, fills and seals them, and makes an operator's requests; each call again until it
is answered. Additions by runs and what gathers reads go through it too: a run waits until they are answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, TypeVar

from ...foundation.together import together
from ...model.errors import Conflict, InvalidRequest, Overloaded, Unavailable
from ...model.job import JobHolder, JobItem, JobSpec, ResultPage, TreeSpec
from ...model.workload import Kind
from ...stores.jobs.jobs import Feeding
from ...stores.queue.intake import Callback
from ...stores.remote import RemoteJobs
from .host import Host, here
from .journal import Execution
from .plan import Plan
from .plan_trees import MOST, MOST_GATHERED, MOST_NARROW, TOLD, BranchItem, TreeJob, TreePlan

T = TypeVar("T")

#: The function that runs everything of trees, and the one that gathers in narrow trees.
BRANCH, GATHERING = "branch", "gathering"
#: Results, and bytes of them, in a page.
PAGE, PAGE_BYTES = 2, 1 << 20
#: Seconds between two tries, and between two looks whether a tree is over.
AGAIN, LOOKS = 0.5, 0.5
_FAILED = (
    "SELECT i.item FROM job_items AS i JOIN jobs AS j ON j.job = i.job JOIN job_trees AS t ON t.tree = j.tree"
    " WHERE t.id = ? AND i.state = 2 ORDER BY i.item"
)
_OVER = "SELECT complete_at, deleted FROM job_trees WHERE id = ?"
_FENCES = "SELECT id, fence FROM tasks"
_HELD = "SELECT fence FROM tasks WHERE id = ? AND state BETWEEN 2 AND 9"


class GrowerAnswer(NamedTuple):
    """A call that was answered: when it was first made and when it was answered, true seconds; whether it was done, the
    words of a refusal, and the answer."""

    began: float
    at: float
    done: bool
    why: str = ""
    word: object = None


class Grower:
    """A client of trees, with what it was told.

    calls    by tree and place of the call
    seals, asks, retries  likewise; the retry by the tree alone
    lives    by the workload that failed: the one that its item has since
    inner    by the run that added: its workload and fence, then the place
    pages    by the run that gathers, and the place after which it reads
    """

    def __init__(self, plan: Plan, store: str, host: Callable[[], Host]) -> None:
        self._plan = plan
        self._store = store
        self._host = host
        self.items: dict[int, BranchItem] = {each.n: each for tree in plan.trees for each in tree.items}
        self.of: dict[int, TreePlan] = {each.n: tree for tree in plan.trees for each in tree.items}
        self.made: set[int] = set()
        self.calls: dict[tuple[int, int], GrowerAnswer] = {}
        self.seals: dict[int, GrowerAnswer] = {}
        self.asks: dict[tuple[int, int], GrowerAnswer] = {}
        self.retries: dict[int, GrowerAnswer] = {}
        self.lives: dict[str, str] = {}
        self.redriven: set[tuple[int, int]] = set()
        self.inner: dict[tuple[str, int], list[GrowerAnswer]] = {}
        self.pages: dict[tuple[str, int, str], GrowerAnswer] = {}
        self._added: set[tuple[str, int]] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def main(self) -> None:
        """Runs the client's process."""
        self._jobs = RemoteJobs(self._store)
        await together(*map(self._grow, self._plan.trees))

    async def _grow(self, tree: TreePlan) -> None:
        await self._until(tree.at)
        spec, feedings = _spec(tree), [_feeding(tree, each) for each in tree.jobs]
        done = Callback(*_around(tree, TOLD)) if tree.told >= 0 else None
        await self._heard(partial(self._jobs.create, spec, feedings, done))
        self.made.add(tree.k)
        here().world.count("trees")
        here().world.say(here().name, f"made {tree.id}")
        works = [self._call(tree, place) for place in range(len(tree.calls))]
        await together(self._seal(tree), self._retry(tree), self._asks(tree), self._redrive(tree), *works)

    async def _until(self, time: float) -> None:
        await asyncio.sleep(max(0.0, time - here().world.now))

    async def _call(self, tree: TreePlan, place: int) -> None:
        call = tree.calls[place]
        await self._until(call.at)
        items = [self._item(tree, n) for n in call.ns]
        add = partial(self._jobs.add, tree.id, tree.jobs[0].name, f"call-{place}", items)
        self.calls[tree.k, place] = await self._answer(f"call {place} of {tree.id}", add)

    async def _seal(self, tree: TreePlan) -> None:
        await self._until(tree.seal)
        self.seals[tree.k] = await self._answer(f"seal of {tree.id}", partial(self._jobs.seal, tree.id, ""))

    async def _asks(self, tree: TreePlan) -> None:
        """Makes the requests about a tree one after the other: a tree is resumed only once its pause was answered."""
        for place, ask in enumerate(tree.asks):
            await self._until(ask.at)
            change = partial(self._jobs.change, tree.id, ask.what, "the world ends it")
            self.asks[tree.k, place] = await self._answer(f"{ask.what} of {tree.id}", change)

    async def _redrive(self, tree: TreePlan) -> None:
        """Redrives all failed items of a tree, and again, and checks that an item gets the same new workload each
        time."""
        for place, at in enumerate(tree.redrives):
            await self._until(at)
            failed = [f"{item:016x}" for (item,) in here().disk.rows("queue", _FAILED, (tree.id,))]
            for _ in range(2):
                answers = await self._heard(partial(self._jobs.redrive, failed))
                for former, answer in zip(failed, answers, strict=True):
                    if answer.workload and self.lives.setdefault(former, answer.workload) != answer.workload:
                        here().journal.wrong(f"trees: {tree.id} gave {former} two other lives")
                    here().world.count(f"trees: redrives{'' if answer.workload else ' refused'}")
            self.redriven.add((tree.k, place))

    async def _retry(self, tree: TreePlan) -> None:
        """Retries a tree once it is over, unless it is forgotten by then."""
        if not tree.retry:
            return
        while not (rows := here().disk.rows("queue", _OVER, (tree.id,))) or rows[0][0] is None:
            if tree.k in self.seals and not rows:
                return
            await asyncio.sleep(LOOKS)
        await asyncio.sleep(tree.retry)
        retry = partial(self._jobs.retry, tree.id, tree.again, "ann")
        self.retries[tree.k] = await self._answer(f"retry of {tree.id}", retry)

    def _item(self, tree: TreePlan, n: int) -> JobItem:
        payload = {"job": f"{tree.k}.{self.items[n].job}", "n": n}
        return JobItem(json.dumps(payload).encode(), key=self.items[n].key)

    async def _answer(self, what: str, call: Callable[[], Awaitable[object]]) -> GrowerAnswer:
        """Makes a call until it is answered, and returns the answer."""
        host = here()
        began = host.world.now
        try:
            word = await self._heard(call)
        except (Conflict, InvalidRequest) as error:
            word = None
            answer = GrowerAnswer(began, host.world.now, False, str(error))
        else:
            answer = GrowerAnswer(began, host.world.now, word != "over", word=word)
        host.world.say(host.name, f"{what}: {answer.why or word}")
        host.world.count(f"trees: {what.partition(' ')[0]}{'' if answer.done else ' refused'}")
        return answer

    async def _heard(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except (Unavailable, Overloaded):
                await asyncio.sleep(AGAIN)

    # ---- what runs add

    def begins(self, run: Execution) -> None:
        """Has this process make the additions of a run that begins, if it makes any."""
        item = self.items.get(run.n)
        if item is not None and item.adds:
            host = self._host()
            host.world.at(host.world.now, host.call, self._spawn, run, item)

    def _spawn(self, run: Execution, item: BranchItem) -> None:
        self._tasks.append(asyncio.ensure_future(self._add_for(run, item)))

    async def _add_for(self, run: Execution, item: BranchItem) -> None:
        """Makes the additions of a run one after the other, as a run does that waits for each answer."""
        tree, said = self.of[item.n], self.inner.setdefault((run.id, run.fence), [])
        for place, (job, n) in enumerate(item.adds):
            added, holder = [self._item(tree, n)], JobHolder(run.id, run.fence)
            add = partial(self._jobs.add, "", job, f"in-{run.id}-{place}", added, holder)
            said.append(await self._answer(f"addition {place} of {run.id}", add))
        self._added.add((run.id, run.fence))

    def added(self, run: Execution) -> bool:
        """Whether all that a run adds was answered."""
        return (run.id, run.fence) in self._added

    # ---- what runs read

    def reads(self, run: Execution, after: str) -> None:
        """Has this process read the page of results after a place, for a run that gathers them."""
        host = self._host()
        host.world.at(host.world.now, host.call, self._spawn_read, run, after)

    def _spawn_read(self, run: Execution, after: str) -> None:
        self._tasks.append(asyncio.ensure_future(self._read_for(run, after)))

    async def _read_for(self, run: Execution, after: str) -> None:
        """Reads a page, and checks that only a run that has its item gets one, and that it does get it."""
        disk, item = here().disk, int(run.id, 16)
        passed = any(fence > run.fence for (fence,) in disk.rows("queue", _HELD, (item,)))
        read = partial(self._jobs.gathered, JobHolder(run.id, run.fence), after, PAGE, PAGE_BYTES)
        answer = self.pages[run.id, run.fence, after] = await self._answer(f"page of {run.id}", read)
        if answer.done and passed:
            here().journal.wrong(f"trees: {run.id} under {run.fence} was read to, and ran elsewhere by then")
        if not answer.done and disk.rows("queue", _HELD, (item,)) == [(run.fence,)]:
            here().journal.wrong(f"trees: {run.id} was not read to, and has its item: {answer.why}")

    def page(self, run: Execution, after: str) -> ResultPage | None:
        """The page that a run waits for; None: it is not there yet. Raises Conflict if it was refused."""
        answer = self.pages.get((run.id, run.fence, after))
        if answer is None:
            return None
        if not isinstance(answer.word, ResultPage):
            raise Conflict(answer.why)
        return answer.word

    def fences(self) -> dict[str, int]:
        """The fence of each workload's last hand-out."""
        return {f"{number:016x}": fence for number, fence in self._host().disk.rows("queue", _FENCES)}


def _spec(tree: TreePlan) -> TreeSpec:
    jobs = [
        JobSpec(each.name, _function(tree, each), each.parents, gather=each.gather, each=each.each)
        for each in tree.jobs
    ]
    told = BRANCH if tree.told >= 0 else ""
    return TreeSpec(
        tree.id, "grown", jobs, policy=tree.policy, most_failed=tree.most_failed, created_by="ann", on_done=told
    )


def _function(tree: TreePlan, job: TreeJob) -> str:
    return GATHERING if job.gather and tree.narrow else BRANCH


def _feeding(tree: TreePlan, job: TreeJob) -> Feeding:
    whole = MOST_NARROW if tree.narrow else MOST_GATHERED
    return Feeding(*_around(tree, job.name, _function(tree, job)), whole if job.gather else MOST)


def _around(tree: TreePlan, job: str, function: str = BRANCH) -> tuple[Kind, bytes, bytes]:
    return Kind(function), f'{{"job":"{tree.k}.{job}","step":'.encode(), b"}"
