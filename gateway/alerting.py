"""Alerting: completes overviews with alerts, the times since when they hold, and forecasts of backlogs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..foundation.clock import Clock
from ..model.dead_letter import LetterRoom
from ..model.gate import Gate
from ..model.overview import Overview
from ..model.reopening import Trouble
from ..stores.queue.lifecycle import WAITING
from ..stores.queue.queue import Ageing
from .config import GatewayConfig
from .objectives import Objectives
from .rules.alerts import SeenBeside, alerts, dated, since_when
from .rules.forecast import Growth
from .rules.recent_refusals import Refusals
from .rules.service_levels import judged
from .submission_measures import SubmissionMeasures

#: Name of the queue's own backlog.
QUEUE = "queue"


class Alerting:
    """Completes overviews with alerts and forecasts. Nothing is durable: after a restart alerts begin anew.

    Invariant: `_growth` has a series for each place of the last overview and no other.
    """

    def __init__(self, config: GatewayConfig, clock: Clock) -> None:
        self.submissions = SubmissionMeasures(clock)
        self.objectives = Objectives(config.service_levels.objectives(), self.submissions, clock)
        self._config = config
        self._clock = clock
        self._growth: dict[str, Growth] = {}
        self._letters = Growth()
        self._since: dict[tuple[str, str], float] = {}
        self.refusals, self.peers = Refusals(), Refusals()
        self.ended_peers: Mapping[str, int] = {}

    def complete(
        self,
        overview: Overview,
        ages: Sequence[Ageing] | None,
        gates: Sequence[Gate],
        store_away: str = "",
        troubles: Sequence[Trouble] = (),
        full_rooms: Sequence[LetterRoom] = (),
    ) -> Overview:
        """The overview with service levels, backlogs and alerts. `ages` None: the queue's store does not answer.
        `full_rooms`: those of dead letters."""
        now, wall = self._clock.monotonic(), self._clock.wall()
        aged = [*(ages or ()), *(age for tailer in overview.tailers for age in tailer.ages)]
        levels = [] if ages is None else judged(aged, self._config.service_levels.rule())
        whole = replace(overview, levels=levels, objectives=self.objectives.observed())
        sizes = {tailer.name: tailer.lag for tailer in whole.tailers if tailer.lag >= 0 and tailer.kind != QUEUE}
        new_letters = 0
        if ages is not None:
            sizes[QUEUE] = sum(whole.queue.get(state.label, 0) for state in WAITING)
            self._letters.seen(whole.dead_letters, now)
            new_letters = max(0, whole.dead_letters - self._letters.least)
        self._growth = {name: self._growth.get(name) or Growth() for name in sizes}
        for name, items in sorted(sizes.items(), key=lambda each: each[0] != QUEUE):
            self._growth[name].seen(items, now)
            whole.backlogs.append(self._growth[name].forecast(name, items))
        seen = SeenBeside(
            store_away,
            self._config.spool_items,
            self._config.spool_bytes,
            *self.refusals.now(wall),
            new_letters,
            tuple(gates),
            tuple(troubles),
            *self.peers.now(wall),
            tuple(full_rooms),
        )
        whole.ended_peers = dict(self.ended_peers)
        whole.alerts = dated(alerts(whole, seen, wall), self._since, wall)
        self._since = since_when(whole.alerts)
        return whole
