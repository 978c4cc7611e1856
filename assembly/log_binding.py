"""Binds a state on a server to one node, where a log is a file of that node: the checkpoints in it are positions
there. The rule is in stores/bindings.py."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ..foundation.clock import Clock
from ..model.errors import ConfigError, TailraceError, Unavailable
from ..stores.bindings import LEASE, RENEWAL, BindingVerdict, LogBinding, binding_of, place_of, verdict
from ..stores.node_id import NAME as NODE
from ..stores.node_id import node_id
from ..stores.sqlite.file import SqliteFile
from ..stores.sqlite.identity import bound_mark, note_bound_mark
from ..stores.state.state import StateGround

#: The file in which a node remembers that it was bound so.
NAME = "tailrace.bound"
#: The file by which an operator says that the state is to go with this folder's logs, whatever ran since.
MEANT = "tailrace.rebind"
_WAYS_OUT = {
    "delay_log": "Set `delay_log` to an engine on a server, for both",
    "log": "Leave tailers of the kind `log` to that node",
}
#: Seconds between two looks at a binding that another run holds, and for the last write of a run.
LOOK, PATIENCE = 0.5, 2.0

_LOG = logging.getLogger("tailrace.stores")


class LogBindings:
    """The bindings of one run. `choice`: the state's part of stores.yaml; `files`: the logs' files, by their names;
    None for a log that is elsewhere."""

    def __init__(
        self,
        folder: Path,
        ground: StateGround,
        choice: Mapping[str, Any],
        files: Mapping[str, SqliteFile | None],
        clock: Clock,
    ) -> None:
        self._folder, self._ground, self._choice, self._files = folder, ground, choice, files
        self._clock = clock
        self._run = secrets.token_hex(8)
        self._wanted: Sequence[str] = ()
        self._held: dict[str, LogBinding] = {}

    async def bind(self, logs: Sequence[str]) -> None:
        """Binds the node's logs of these names. Raises ConfigError where they are bound to another node, to a run
        elsewhere, or to another copy of the folder; and Unavailable where the state does not answer and did not
        before."""
        known = self._folder / NAME
        said = f"{hashlib.sha256(json.dumps(self._choice, sort_keys=True).encode()).hexdigest()} {' '.join(logs)}\n"
        try:
            for what in logs:
                if what not in self._held:
                    await self._bind(what)
        except Unavailable as error:
            if not known.exists() or known.read_text() != said:
                raise
            _LOG.warning("%s; this node was bound to it before, so it starts", error)
        else:
            known.write_text(said)
            (self._folder / MEANT).unlink(missing_ok=True)
        self._wanted = [*logs]

    async def hold(self) -> None:
        """Renews the bindings, for ever. Raises ConfigError when another run took one."""
        while True:
            await asyncio.sleep(RENEWAL)
            with contextlib.suppress(Unavailable):  # nobody else reaches it either
                for what in self._wanted:
                    await (self._renew(what) if what in self._held else self._bind(what))

    async def release(self) -> None:
        """Frees the bindings for other places, if the server answers soon. Each file gets a last mark, so that a copy
        from before this end is known as one that was left behind."""
        held, self._held, self._wanted = self._held, {}, ()
        with contextlib.suppress(TailraceError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                for what, last in held.items():
                    mark = secrets.token_hex(8)
                    both = replace(last.renewed(), marks=(*last.marks, mark))
                    if await self._ground.rebind(what, last.text(), both.text()) == both.text():
                        await self._file(what).write(partial(note_bound_mark, mark=mark))
                        free = replace(both, run="", place="", marks=(mark,))
                        await self._ground.rebind(what, both.text(), free.text())

    async def _bind(self, what: str) -> None:
        file = self._file(what)
        mark, new = await file.read(bound_mark), secrets.token_hex(8)
        marks = tuple(each for each in (mark, new) if each)
        wanted = LogBinding(node_id(self._folder), self._run, place_of(self._folder), 0, marks)
        seen, before, since = "", "", self._clock.monotonic()
        while True:
            there = await self._ground.rebind(what, seen, wanted.text())
            if there == wanted.text():
                break
            now = self._clock.monotonic()
            held = binding_of(there)
            renewed = bool(before) and there != before
            before, since = there, now if there != before else since
            found = verdict(held, wanted, mark, now - since)
            if found is BindingVerdict.LEFT_BEHIND and (self._folder / MEANT).exists():
                found = BindingVerdict.FREE
            if found is not BindingVerdict.FREE and (found is not BindingVerdict.HELD or renewed):
                raise self._refusal(what, held, found)
            if found is BindingVerdict.FREE:
                seen, wanted = there, replace(wanted, beat=held.beat + 1)
                continue
            if since == now:
                _LOG.warning(
                    "%s, with which the state goes, was held by a run elsewhere (%s) and not given back: waiting up to "
                    "%.0f s for whether that still runs",
                    file.path,
                    held.node,
                    LEASE,
                )
            await asyncio.sleep(LOOK)
        await file.write(lambda connection: note_bound_mark(connection, new))
        self._held[what] = replace(wanted, marks=(mark, new))
        await self._renew(what)

    async def _renew(self, what: str) -> None:
        last = self._held[what]
        mark = last.marks[-1]
        for _ in range(2):
            next = replace(last.renewed(), marks=(mark,))
            there = await self._ground.rebind(what, last.text(), next.text())
            if there == next.text():
                self._held[what] = next
                return
            last = binding_of(there)
            if last.run != self._run:
                break  # otherwise the answer to an earlier renewal was lost
        del self._held[what]
        wanted = LogBinding(node_id(self._folder), self._run, place_of(self._folder))
        found = verdict(last, wanted, mark, LEASE)
        if found is not BindingVerdict.FREE or last.run:
            raise self._refusal(what, last, BindingVerdict.HELD if found is BindingVerdict.FREE else found)
        await self._bind(what)

    def _file(self, what: str) -> SqliteFile:
        file = self._files[what]
        assert file is not None
        return file

    def _refusal(self, what: str, held: LogBinding, found: BindingVerdict) -> ConfigError:
        file = self._file(what).path
        if found is BindingVerdict.ANOTHER_NODE:
            return ConfigError(
                f"stores.yaml: the `state` goes with the `{what}` of another node ({held.node}), which is a file "
                f"there: nodes that share a state must share that log too. {_WAYS_OUT[what]}"
            )
        if found is BindingVerdict.HELD:
            return ConfigError(
                f"{file}: another node of this name runs ({held.node}), and the state goes with its `{what}`. This "
                f"folder is a copy of that node's: stop that one first; or, for a node of its own, remove {NODE} here, "
                "and give it a state of its own"
            )
        return ConfigError(
            f"{file}: a copy of this folder ran since, and the state goes with that one: what was appended there is "
            "not here, and what is appended here would be passed over by its checkpoints. Use that copy. If it is "
            f"gone, say `tailrace store rebind --data {self._folder}`: tailers that were further than this log goes "
            "stop then, and say what to do"
        )
