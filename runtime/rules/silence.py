"""Silence: an executor whose control thread shows no pulse, while its supervisor is awake, ends before its lease does.

That thread needs nothing but the interpreter lock and a turn of a processor. A call into C that keeps the lock, or a
function that stops its own process, hears of no renewal; the kernel's timer then ends the process although its lease
was renewed, which looks like a lease that was lost. It is the executor's own doing: what ran in it is a suspect.
Pure: times are CLOCK_MONOTONIC seconds of this host. A supervisor that stood still itself saw nothing, and a machine
that did so is nobody's fault: a look that comes late counts as two pauses, however late it is.
"""

from __future__ import annotations

from ...model.lease import LeaseSizes

#: Looks in each heartbeat.
LOOKS = 4


def longest(sizes: LeaseSizes) -> float:
    """Seconds of silence that an executor may have: less than is left of any lease that is renewed at each heartbeat,
    by the two looks that it may take to notice."""
    return sizes.granted_to_worker - sizes.heartbeat * (1 + 2 / LOOKS)


def said(seconds: float) -> str:
    """The words for what happened to a process that was silent for so long."""
    return f"kept the interpreter lock, or stood still, for {seconds:.3g} s"


class Silence:
    """The silence of one executor. `pause`: seconds between two looks."""

    def __init__(self, pause: float, now: float) -> None:
        self.seconds = 0.0  # of silence, of those that the supervisor was awake
        self._pause = pause
        self._looked = now
        self._pulse = 0.0

    def look(self, pulse: float, now: float) -> float:
        """Takes in the last pulse (0: none yet). Returns the seconds of silence."""
        passed, self._looked = min(now - self._looked, 2 * self._pause), now
        if pulse != self._pulse or not pulse:
            self._pulse, self.seconds = pulse, 0.0
            passed = min(passed, max(0.0, now - pulse)) if pulse else 0.0
        self.seconds += passed
        return self.seconds

    def is_to_end(self, longest: float, armed: float, renewed: float, now: float) -> bool:
        """Whether to end the process: it has been silent for `longest` seconds and has not heard of a lease that was
        `renewed` beyond what its timer is armed to (0: it is not), which rings within two looks."""
        return self.seconds > longest and renewed > armed and armed - now < 2 * self._pause

    def is_own_doing(self, armed: float, renewed: float, when: float) -> bool:
        """Whether a process that its timer ended at `when`, armed to `armed`, did not hear in time of a lease that was
        `renewed` until later, for a reason of its own: it was silent, and its supervisor awake, for all but one of
        the last looks."""
        unseen = when - self._looked
        return (
            renewed > armed
            and unseen <= 2 * self._pause
            and self._pulse > 0
            and self.seconds >= max(2 * self._pause, when - self._pulse - 3 * self._pause)
        )
