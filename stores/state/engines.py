"""The engines that the state may have besides the embedded one: the values of `state` in stores.yaml."""

from __future__ import annotations

from ..engines import Engines, StoreEngine
from .state import StateStores

#: An engine's `build` gets its options, StoresConfig, a Clock, `wait`, `fleet` and `times`. `wait` is the lease of a
#: source, seconds, for which no stream is taken on a server that was promoted or put back from a copy. `fleet` is the
#: fleet of this process, empty where it has none: a state of another fleet is refused. `times` has this host's trusted
#: time, and takes up that of the server's clock.
StateEngine = StoreEngine[StateStores]

ENGINES = Engines[StateStores](
    {
        "postgres": "tailrace.stores.state.postgres:ENGINE",
        "redis": "tailrace.stores.state.redis:ENGINE",
    }
)
