"""The application of some worlds: it takes orders in transactions of its own, each with a workload in its outbox; and
the check of what became of them. Read from outside of every host."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Set

from ...foundation.together import together
from ...stores.outbox.enqueue import enqueue
from ...stores.outbox.sqlite_table import create
from ...stores.queue.admission import SUBMISSION_PREFIX
from .host import here
from .journal import Journal
from .parts import work
from .plan import Plan, ShopOrder
from .sqlite_disk import Disk
from .sqlite_shop import SHOP

_ORDERS = "CREATE TABLE IF NOT EXISTS orders (place INTEGER PRIMARY KEY, n INTEGER, token TEXT)"
_TAKEN = "SELECT n, token FROM orders ORDER BY place"
_WAIT = "SELECT count(*) FROM tailrace_outbox"
_ID = "SELECT id FROM dedupe WHERE key = ?"


class Shop:
    """A Guest. `_over` are the numbers of the orders whose transactions are over; the committed ones are in the
    database. Invariant: an order and its workload are there together, or neither is."""

    def __init__(self, plan: Plan, disk: Disk, journal: Journal) -> None:
        self._plan = plan
        self._disk = disk
        self._journal = journal
        self._over: list[int] = []
        for statement in (_ORDERS, *create()):
            disk.connect(SHOP).execute(statement)

    async def main(self) -> None:
        """Runs the application's process."""
        await together(*map(self._take, self._plan.orders))

    async def _take(self, order: ShopOrder) -> None:
        host = here()
        await asyncio.sleep(max(0.0, order.at - host.world.now))
        connection = host.disk.connect(SHOP)
        connection.execute("BEGIN")
        left = enqueue(connection, work, n=order.n, key=order.key)
        connection.execute("INSERT INTO orders (n, token) VALUES (?, ?)", (order.n, left.token))
        connection.execute("ROLLBACK" if order.rolled_back else "COMMIT")
        self._over.append(order.n)
        host.world.say(host.name, f"order {order.n} is {'rolled back' if order.rolled_back else 'committed'}")
        host.world.count("orders rolled back" if order.rolled_back else "orders committed")

    # ---- what must become of them

    def pending(self) -> Iterator[str]:
        """Lines about orders that are still to come, and rows that wait."""
        if len(self._over) < len(self._plan.orders):
            yield f"{len(self._plan.orders) - len(self._over)} orders are still to come"
        for (count,) in self._disk.rows(SHOP, _WAIT):
            if count:
                yield f"{count} rows wait in the outbox"

    def made(self) -> Set[str]:
        """Ids of the workloads of committed orders."""
        return {id_ for _, id_ in self._known() if id_}

    def _known(self) -> list[tuple[int, str]]:
        """The number of each committed order, as they were committed, and the id of its workload; empty: none."""
        known = []
        for n, token in self._disk.rows(SHOP, _TAKEN):
            rows = self._disk.rows("queue", _ID, (SUBMISSION_PREFIX + token,))
            known.append((n, f"{rows[0][0]:016x}" if rows else ""))
        return known

    def at_rest(self) -> None:
        """Checks that each committed order has one workload, which ran, that other orders have none, and that all came
        in order."""
        wrong, known = self._journal.wrong, self._known()
        for n, id_ in known:
            story = self._journal.stories.get(id_)
            if not id_:
                wrong(f"outbox: order {n} was committed, and the queue has nothing of it")
            elif story is None or story.n != n:
                wrong(f"outbox: {id_} is of order {n}, and ran {'never' if story is None else f'item {story.n}'}")
        committed = {n for n, _ in known}
        undone = {order.n for order in self._plan.orders} - committed
        for id_, story in self._journal.stories.items():
            if story.n in undone:
                wrong(f"outbox: {id_} ran, and the transaction of order {story.n} was rolled back")
        ids = [id_ for _, id_ in known if id_]
        if ids != sorted(ids):
            wrong("outbox: what was committed later is before what was committed earlier")
