"""Binds a state on a server to one node, where a log is a file of that node: the checkpoints in it are positions
there."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..model.errors import ConfigError, Unavailable
from ..stores.node_id import node_id, same_node
from ..stores.state.state import StateGround

#: The file in which a node remembers that it was bound so.
NAME = "tailrace.bound"
_WAYS_OUT = {
    "delay_log": "Set `delay_log` to an engine on a server, for both",
    "log": "Leave tailers of the kind `log` to that node",
}

_LOG = logging.getLogger("tailrace.stores")


async def bind(folder: Path, ground: StateGround, choice: Mapping[str, Any], logs: Sequence[str]) -> None:
    """Binds the node in `folder` to a state by the names of its logs. Raises ConfigError where the state is bound to
    another node, and Unavailable where it does not answer and did not before."""
    me = node_id(folder)
    known = folder / NAME
    said = f"{hashlib.sha256(json.dumps(choice, sort_keys=True).encode()).hexdigest()} {' '.join(logs)}\n"
    try:
        for what in logs:
            other = await ground.bind(what, me)
            if not same_node(other, me):
                raise ConfigError(
                    f"stores.yaml: the `state` goes with the `{what}` of another node ({other}), which is a file "
                    f"there: nodes that share a state must share that log too. {_WAYS_OUT[what]}"
                )
    except Unavailable as error:
        if not known.exists() or known.read_text() != said:
            raise
        _LOG.warning("%s; this node was bound to it before, so it starts", error)
    else:
        known.write_text(said)
