"""Settings of all tests, and the servers that they may ask for."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
from servers.kafka import kafka, own_kafka

__all__ = ["kafka", "own_kafka"]

#: How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("tailrace", deadline=None)
settings.load_profile("tailrace")
