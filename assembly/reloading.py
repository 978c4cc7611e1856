"""Reloading: the files of a configuration directory, read again while everything runs.

`quotas.yaml`, `schedules.yaml` and the files of tailers take effect at once; the others wait for a restart, as is said.
All files are read and checked before anything is changed: where one is broken the former ones stay in force. A change
that could not be put in force for another reason is told, and tried again with the next reload. Files that are watched
are read once they have been the same at two looks, and not while one is empty: most programs empty a file, then write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.config import load
from ..foundation.duties import Duties
from ..foundation.lifecycle import cancel
from ..gateway.environment import DeclaredFiles
from ..model.errors import ConfigError, InvalidRequest, TailraceError, Unavailable, UserError
from ..model.reopening import Trouble
from ..tailers.config import TailerConfig
from ..tailers.tailer_files import PATTERN, files_of, is_tailer_file
from ..wire.ports.files import FileChange
from .files import MODELS, read_all
from .settings import TAILERS, ConfigDirectory

#: Seconds between looks at whether a file is another one, where files are watched.
LOOK_EVERY = 1.0
#: The files that take effect at once, beside those of tailers.
LIVE = ("quotas.yaml", "schedules.yaml")
IN_FORCE, LATER = "in force", "takes effect when its part is started again"

_LOG = logging.getLogger("tailrace.reload")

#: By path: when a file was changed, its size, and its inode. They tell one state of the files from another.
Stamps = dict[str, tuple[int, int, int]]
#: Stamp of a named file that is not there, or leads nowhere, as the kubelet's links do while it takes files away.
NOTHING = (0, -1, 0)

#: Puts other declared files in force: those before, those now.
Declare = Callable[[DeclaredFiles, DeclaredFiles], Awaitable[None]]
#: Makes the tailers those of these files; answers name → why it is not as its file says ("": it is), for each that
#: changed.
Reconfigure = Callable[[Sequence[TailerConfig]], Awaitable[dict[str, str]]]
#: Raises ConfigError where there cannot be these tailers together, or here; Unavailable where that cannot be known now.
Check = Callable[[Sequence[TailerConfig]], Awaitable[None]]


class Reloading:
    """The files in force: a Part. With `watch` it looks by itself whether a file has changed. `tailers`: files of
    tailers besides those of the directory, and folders of such files.

    Invariant: `_settings` and `_tailers` are in force, or wait for a restart."""

    def __init__(
        self,
        config: Path | None,
        tailers: Sequence[Path],
        *,
        declare: Declare | None,
        reconfigure: Reconfigure | None,
        watch: bool,
        check: Check | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.duties = Duties("reload")
        self._config = config
        self._named = list(tailers)
        self._declare = declare
        self._reconfigure = reconfigure
        self._watch = watch
        self._check = check
        self._again = False  # the files are not in force yet, for a reason that is not in them
        self._clock = clock
        self._busy = asyncio.Lock()
        self._work: set[asyncio.Task[list[FileChange]]] = set()
        self._broken: Trouble | None = None
        self._seen = self._looked = self._stamps()  # stamps of the files that were read, and of the last look
        self._told = ""  # the reason that was logged last, why they are not read
        self._settings, self._tailers = self._read()

    async def start(self) -> None:
        """Begins to look, if it is to look by itself."""
        if self._watch:
            self.duties.begin(self._look(), "looking at the files")

    async def drain(self, timeout: float) -> None:
        """Ends the looks, and finishes reloads that were asked for."""
        await self.duties.end()
        if self._work:
            await asyncio.wait(self._work, timeout=timeout)

    async def stop(self) -> None:
        """Ends the looks and the reloads."""
        await self.duties.end()
        for work in list(self._work):
            await cancel(work)

    def troubles(self) -> list[Trouble]:
        """The reason why files that were changed are not in force."""
        return [] if self._broken is None else [self._broken]

    async def reload(self) -> list[FileChange]:
        """Puts changes in the files in force; see FilePort. It goes on when the caller waits no more."""
        return await self._shielded(None)

    async def look(self) -> None:
        """Looks once whether files have changed, and puts changes in force once they are written."""
        stamps = await asyncio.to_thread(self._stamps)
        written, self._looked = stamps == self._looked, stamps
        if not written or (stamps == self._seen and not self._again):
            return
        if emptied := [
            path for path, (_, size, _) in stamps.items() if not size and stamps[path] != self._seen.get(path)
        ]:
            self._again = True
            error = ConfigError(f"{', '.join(emptied)}: empty: write its content, or {{}} for no settings at all")
            self._ails(error, "write it, or ask for a reload: until then the former files are in force")
            self._tell(error)
            return
        try:
            for change in await self._shielded(stamps):
                _LOG.info("%s: %s, %s", *change)
            self._told = ""
        except TailraceError as error:
            self._tell(error)

    def _tell(self, error: TailraceError) -> None:
        if str(error) != self._told or not self._again:
            _LOG.error("the files are not reloaded: %s", error)
        self._told = str(error)

    async def _shielded(self, looked: Stamps | None) -> list[FileChange]:
        work = asyncio.create_task(self._reload(looked), name="reload")
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        return await asyncio.shield(work)

    async def _reload(self, looked: Stamps | None) -> list[FileChange]:
        """Reads and applies the files; returns the changes. None where the files are not those that were `looked` at:
        they are still being written."""
        async with self._busy:
            self._seen = self._stamps() if looked is None else looked
            found: list[FileChange] = []
            try:
                settings, tailers = await asyncio.to_thread(self._read)
                if looked is not None and await asyncio.to_thread(self._stamps) != looked:
                    self._again = True
                    return found
                if self._check is not None:
                    await self._check([config for _, config in tailers.values()])
            except ConfigError as error:
                self._again = False
                self._ails(error, "put it right: until then the former files are in force")
                raise
            except TailraceError as error:
                raise self._half_way(error, found) from error
            try:
                found += await self._new_settings(settings)
                found += await self._new_tailers(tailers)
            except TailraceError as error:
                raise self._half_way(error, found) from error
            self._broken, self._again = None, False
            return found

    def _half_way(self, error: TailraceError, found: Sequence[FileChange]) -> TailraceError:
        """The error to raise where only some of the changes are in force."""
        so_far = ", ".join(each.file for each in found) or "nothing new"
        text = f"{error}; in force so far: {so_far}. Reload again to have the rest"
        self._again = True
        self._ails(error, f"reload again once it is mended; in force so far: {so_far}")
        return InvalidRequest(text) if isinstance(error, UserError) else Unavailable(text)

    def _ails(self, error: TailraceError, todo: str) -> None:
        since = self._clock.wall() if self._broken is None else self._broken.since
        self._broken = Trouble("configuration", since, str(error), todo=todo)

    def _read(self) -> tuple[dict[str, Any], dict[str, tuple[str, TailerConfig]]]:
        """All files: settings by file name, and tailers by name, each with its file."""
        directory = ConfigDirectory(self._config)
        settings = read_all(directory)
        tailers: dict[str, tuple[str, TailerConfig]] = {}
        for path in [*directory.tailers(), *files_of(self._named)]:
            config = load(path, TailerConfig)
            if config.name in tailers:
                raise ConfigError(
                    f"{path}: the tailer {config.name!r} is also in {tailers[config.name][0]}: rename one"
                )
            tailers[config.name] = (str(path), config)
        return settings, tailers

    async def _new_settings(self, settings: dict[str, Any]) -> list[FileChange]:
        changed = [name for name in MODELS if settings[name] != self._settings[name]]
        if self._declare is not None and any(name in LIVE for name in changed):
            await self._declare(self._declared_by(self._settings), self._declared_by(settings))
        else:
            changed = [name for name in changed if self._declare is not None or name not in LIVE]
        self._settings = settings
        return [FileChange(name, "changed", IN_FORCE if name in LIVE else LATER) for name in changed]

    def _declared_by(self, settings: dict[str, Any]) -> DeclaredFiles:
        there = self._config is not None and (self._config / "schedules.yaml").exists()
        quotas, schedules = settings["quotas.yaml"].all(), settings["schedules.yaml"].kept()
        return DeclaredFiles(quotas=quotas, schedules=schedules if there else None)

    async def _new_tailers(self, tailers: dict[str, tuple[str, TailerConfig]]) -> list[FileChange]:
        if self._reconfigure is None:
            return []
        before = self._tailers
        if {name: each[1] for name, each in before.items()} == {name: each[1] for name, each in tailers.items()}:
            self._tailers = tailers
            return []
        told = await self._reconfigure([config for _, config in tailers.values()])
        self._tailers = tailers
        found = []
        for name in sorted({*before, *tailers}):
            file, was, now = (tailers.get(name) or before[name])[0], before.get(name), tailers.get(name)
            if was is not None and now is not None and was[1] == now[1]:
                continue
            change = "added" if was is None else "removed" if now is None else "changed"
            why = told.get(name, "")
            found.append(FileChange(file, f"tailer {name} {change}", f"not in force: {why}" if why else IN_FORCE))
            if why and was is not None:
                self._tailers[name] = was
            elif why:
                self._tailers.pop(name)
        return found

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await self.look()

    def _stamps(self) -> Stamps:
        found: Stamps = {}
        folders = [] if self._config is None else [self._config, self._config / TAILERS]
        paths = [path for folder in [*folders, *self._named] for path in folder.glob(PATTERN) if is_tailer_file(path)]
        for path in [*paths, *(each for each in self._named if not each.is_dir())]:
            try:
                facts = path.stat()
            except OSError:
                found[str(path)] = NOTHING
                continue
            found[str(path)] = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        return found
