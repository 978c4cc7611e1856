"""The engines that the state may have besides the embedded one: what `state` in stores.yaml may say."""

from __future__ import annotations

from ..engines import Engines, StoreEngine
from .state import StateStores

#: Made of its options, StoresConfig, a Clock, `wait`: the lease of a source, seconds, for which no stream is taken on a
#: server that was promoted or put back from a copy, and `fleet`: that of this process, empty where it has none. A state
#: of another fleet is refused.
StateEngine = StoreEngine[StateStores]

ENGINES = Engines[StateStores](
    {
        "postgres": "tailrace.stores.state.postgres:ENGINE",
        "redis": "tailrace.stores.state.redis:ENGINE",
    }
)
