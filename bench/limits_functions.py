"""The functions of the scenario `limits`: no-ops that say which downstreams they call."""

from __future__ import annotations

from .functions import no_op

#: How many there are, and how many downstreams they call.
FUNCTIONS, DOWNSTREAMS = 1_000, 20

globals().update({f"noop_{number:03}": no_op(number, [f"d{number % DOWNSTREAMS}"]) for number in range(FUNCTIONS)})
