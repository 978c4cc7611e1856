"""Forgets checkpoints of the delay service that are not of its present log, before anything reads by them.

They are positions. In another log, in a stream that was made again, or in one that lost its end, items that are parked
next get positions below them: they would be taken for moved on or done, never be read, and be trimmed. Without
checkpoints a log is read from its start: items that were done already and not trimmed come once more, and the ledger
starts none of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any

from ..delay_service.leadership import SOURCE
from ..model.errors import StaleFence, Unavailable
from ..model.life import Life
from ..model.parked import due_function, due_stream
from ..stores.checkpoints.checkpoints import Checkpoints, Mark
from ..stores.checkpoints.lives import NOTES, Lives
from ..stores.engines import EMBEDDED
from ..stores.log.log import Log
from ..stores.ownership.ownership import Ownership
from ..stores.state.sqlite import DELAY_LOG_NOTE

#: The source of the tailer that reads what is due, whose partitions are functions.
DUE = "due"
#: The options that say which log it is.
_PLACE = ("engine", "url", "bootstrap_servers", "prefix")
#: Seconds for which a log that does not answer is asked at the start.
PATIENCE = 10.0
_EPOCH = 1

_LOG = logging.getLogger("tailrace.stores")


async def forget_marks_of_another_log(
    checkpoints: Checkpoints, ownership: Ownership, log: Log, choice: Mapping[str, Any]
) -> None:
    """Compares the checkpoints with `log`, which `choice` describes, and forgets them if they are of another one. A
    store that is away is not waited for: the log says then that nothing was compared."""
    try:
        why = await _why(checkpoints, log, log_name(choice))
        if why:
            starts: dict[str, int] = {}
            with contextlib.suppress(Unavailable, TimeoutError):  # another one is forgotten all the same
                starts = await _starts(log)
            for source in (SOURCE, DUE, NOTES + SOURCE):
                await checkpoints.forget(source)
            await _begin(checkpoints, ownership, starts)
            await _note(checkpoints, log_name(choice))
            _LOG.warning("the delay service's checkpoints are not of its log: %s. The whole log is read again", why)
    except (Unavailable, TimeoutError) as error:
        why = str(error) or type(error).__name__
        _LOG.warning("the delay service's checkpoints were not compared with its log (`delay_log`): %s", why)


def log_name(choice: Mapping[str, Any]) -> str:
    """A name of the log of `delay_log` in stores.yaml, without its secrets; empty for the node's own file, to which
    checkpoints without a note belong."""
    engine = str(choice.get("engine", EMBEDDED))
    if engine == EMBEDDED:
        return ""
    place = {key: choice[key] for key in _PLACE if key in choice}
    return f"{engine} {hashlib.sha256(json.dumps(place, sort_keys=True, default=str).encode()).hexdigest()[:16]}"


async def _why(checkpoints: Checkpoints, log: Log, name: str) -> str:
    """The reason why the checkpoints are not of this log; empty: they are. Then the lives of its streams are noted."""
    noted = next(iter(await checkpoints.load(DELAY_LOG_NOTE)), "")
    if noted != name:
        return f"they are of {noted or 'delay.db, or an earlier version'}, and it is {name or 'delay.db'} (`delay_log`)"
    marks = {stream: mark.position for stream, mark in (await checkpoints.load(SOURCE)).items()}
    marks |= {due_stream(function): mark.position for function, mark in (await checkpoints.load(DUE)).items()}
    marks = {stream: position for stream, position in marks.items() if position}
    async with asyncio.timeout(PATIENCE):
        bounds = await asyncio.gather(*[log.bounds(stream) for stream in marks])
    for (stream, position), found in zip(marks.items(), bounds, strict=True):
        end = found[0].end if 0 in found else 0
        if end < position:
            return f"that of {stream} is {position}, and the stream ends at {end}"
    if not name:  # nobody else writes this file: nothing was appended since it was begun anew
        return ""
    async with asyncio.timeout(PATIENCE):
        signs = dict(zip(marks, await asyncio.gather(*[log.life(stream) for stream in marks]), strict=True))
    lives = Lives(checkpoints, SOURCE)
    await lives.load()
    if others := [stream for stream, sign in signs.items() if lives.life(stream).is_another(sign)]:
        return f"{others[0]} was deleted and made again"
    for stream, sign in signs.items():
        await lives.meet(stream, Life(sign), stream)
    return ""


async def _starts(log: Log) -> dict[str, int]:
    """First position of each function's due stream, where that is not 0."""
    async with asyncio.timeout(PATIENCE):
        functions = [name for stream in await log.streams() if (name := due_function(stream)) is not None]
        bounds = await asyncio.gather(*[log.bounds(due_stream(name)) for name in functions])
    starts = {name: found[0].start if 0 in found else 0 for name, found in zip(functions, bounds, strict=True)}
    return {name: start for name, start in starts.items() if start}


async def _begin(checkpoints: Checkpoints, ownership: Ownership, starts: Mapping[str, int]) -> None:
    """Sets the checkpoints of due streams to these positions, so that none is lost that was trimmed before. It is done
    under the epoch of the last owner: the next owner has a higher one."""
    row = await ownership.read(DUE, "") if starts else None
    if row is not None:
        with contextlib.suppress(StaleFence):
            await checkpoints.open(DUE, row.epoch)
            await checkpoints.commit(DUE, row.epoch, {name: Mark(start) for name, start in starts.items()})


async def _note(checkpoints: Checkpoints, name: str) -> None:
    """Records which log the checkpoints belong to from now on. If that fails, the next start looks again."""
    await checkpoints.forget(DELAY_LOG_NOTE)
    if name:
        with contextlib.suppress(StaleFence):
            await checkpoints.open(DELAY_LOG_NOTE, _EPOCH)
            await checkpoints.commit(DELAY_LOG_NOTE, _EPOCH, {name: Mark(1)})
