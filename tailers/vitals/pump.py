"""How a tailer is: what people see, and what the watchdog (rules/watchdog.py) looks at."""

from __future__ import annotations

from ..pumps.pump import Pump
from ..rules.watchdog import WatchdogFacts


def state_of(pump: Pump) -> tuple[str, str]:
    """The state's name as people see it, and a detail. A tailer of many functions runs while one is clogged."""
    disconnected = pump.session.unreachable and not pump.session.connected
    outage = "; ".join(sorted(closed.reason for closed in pump.outages))
    held = f"{pump.held} items are held: {pump.held_because}" if pump.held and pump.held_because else ""
    clogged = pump.clogged or (outage if pump.only_function else "")
    states = [
        ("disconnected", pump.source_unreachable),
        ("draining", pump.draining),
        ("starting", pump.starting),
        ("paused", pump.paused),
        ("disconnected", pump.session.unreachable if disconnected else ""),
        ("clogged", clogged),
    ]
    name, why = next(((name, why) for name, why in states if why), ("running", outage or held))
    return name, why if isinstance(why, str) else ""


def facts_of(pump: Pump, failed: str) -> WatchdogFacts:
    """How a pump is now. `failed`: why its tailer ended for good, empty while it runs."""
    session, credit = pump.session, pump.session.credit
    names = pump.functions or set(session.functions)
    unserved = sorted(names - credit.served())
    no_worker = ""
    if session.connected and len(unserved) == len(names):
        no_worker = f"no worker runs {', '.join(unserved[:3])}" if unserved else "no worker runs any function"
    gates = sorted({closed.reason for closed in credit.closed if closed.function in names})
    pushed = min((out.pushed_at for out in pump.flights.values()), default=None)
    return WatchdogFacts(
        completions=pump.counts.completed,
        lag=pump.backlog,
        in_flight=pump.in_flight,
        held=pump.held,
        oldest=0.0 if pushed is None else max(0.0, pump.clock.wall() - pushed),
        failed=failed,
        source=pump.source_unreachable,
        store=pump.store_failing,
        scheduler=session.unreachable if not session.connected else "",
        starting=pump.starting,
        paused=pump.paused,
        clogged="; ".join(closed.reason for closed in pump.outages),
        gate="; ".join(gates[:3]),
        no_worker=no_worker,
        held_because=pump.held_because,
    )
