"""The laws that every engine of the queue obeys. An engine's test derives from `QueueLaws` and yields, in a fixture
`engine`, an object like `QueueEngine`:

    class TestMyQueue(QueueLaws):
        @pytest.fixture
        async def engine(self, tmp_path):
            ...

`queue_model.py` holds the same queue against a model, with steps that nobody thought of.
"""

from __future__ import annotations

from .queue_claims import KeyLaws, LeasingLaws, SubmittingLaws, UsedOnceLaws
from .queue_engine import MAX_PAYLOAD, QueueEngine
from .queue_items import PeekLaws, RescheduleLaws
from .queue_leases import CancellingLaws, LeaseLaws
from .queue_settling import SettlingLaws, TellingLaws
from .queue_tenants import TenantKeyLaws
from .queue_turns import TurnLaws


class QueueLaws(
    SubmittingLaws,
    LeasingLaws,
    UsedOnceLaws,
    LeaseLaws,
    SettlingLaws,
    CancellingLaws,
    RescheduleLaws,
    PeekLaws,
    KeyLaws,
    TellingLaws,
    TenantKeyLaws,
    TurnLaws,
):
    """All laws of a queue, for an engine's test to derive from."""


__all__ = ["MAX_PAYLOAD", "QueueEngine", "QueueLaws"]
