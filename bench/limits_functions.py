"""The functions of the scenario `limits`: no-ops that are declared to call downstreams."""

from __future__ import annotations

from .functions import no_op

#: Number of functions, and of downstreams that they call.
FUNCTIONS, DOWNSTREAMS = 1_000, 20

globals().update({f"noop_{number:03}": no_op(number, [f"d{number % DOWNSTREAMS}"]) for number in range(FUNCTIONS)})
