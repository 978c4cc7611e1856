"""Recording: a recorder's lines in a file (JSON lines, gzip), written as they come and read whole."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..model.errors import InvalidRequest
from ..model.workload import Kind
from .recorder import FORMAT, VERSION

#: Arrivals that are read of one recording, in rows and in items.
MOST_ARRIVALS, MOST_ITEMS = 50_000_000, 100_000_000
#: Bytes of one line.
LONGEST_LINE = 64 << 20
_AGAIN = "record anew with `tailrace record FILE`"


@dataclass(slots=True)
class RecordedPool:
    """A pool of a worker, as it was last: `places` is how many items it may have."""

    worker: str
    name: str
    functions: tuple[str, ...]
    places: int


@dataclass(slots=True)
class Recording:
    """Recording, as it was read.

    arrivals  tick → kinds and how many, rising
    runs      of each kind how long its runs took, in the order of their ends, seconds: means of some
    units     of each kind, downstream and unit what its runs used, in the order of their ends: means of some
    lost      items that were not recorded
    cut       why it ends early; empty: it does not
    """

    tick: float
    hashed: bool
    kinds: list[Kind] = field(default_factory=list)
    arrivals: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    runs: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    units: dict[int, dict[tuple[str, str], list[tuple[int, float]]]] = field(default_factory=dict)
    pools: list[RecordedPool] = field(default_factory=list)
    seconds: float = 0.0
    lost: int = 0
    items: int = 0
    cut: str = ""


def read_recording(path: Path) -> Recording:
    """A whole file, or as far as it can be read. Raises InvalidRequest for one that is none, is of another version or
    has nothing in it."""
    lines = _lines(path)
    first = next(lines, None)
    if isinstance(first, str) or first is None:
        raise InvalidRequest(f"{path}: {first or 'it is empty'}: {_AGAIN}")
    if FORMAT not in first:
        raise InvalidRequest(f"{path}: not a recording of `tailrace record`: {_AGAIN}")
    if first[FORMAT] != VERSION:
        raise InvalidRequest(
            f"{path}: it is of version {first[FORMAT]!r} of the format, and this tailrace reads {VERSION}: {_AGAIN}"
        )
    found = _Reading(Recording(float(first["tick"]), bool(first.get("hashed"))))
    for line in lines:
        try:
            if isinstance(line, str):
                raise ValueError(line)
            found.take(line)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            found.whole.cut = f"read up to {found.whole.seconds:.0f} s: {error or type(error).__name__}"
            break
    whole = found.whole
    whole.arrivals = dict(sorted(whole.arrivals.items()))
    if not whole.items:
        raise InvalidRequest(f"{path}: nothing arrived in its {whole.seconds:.0f} s: {_AGAIN} while there is work")
    if not whole.pools:
        raise InvalidRequest(f"{path}: no worker was attached while it was made: {_AGAIN} with workers")
    return whole


class _Reading:
    """A recording while it is read. Items that went back come again: they count where they came first."""

    def __init__(self, whole: Recording) -> None:
        self.whole = whole
        self._again: defaultdict[int, int] = defaultdict(int)

    def take(self, frame: dict[str, Any]) -> None:
        """Adds one more frame, whole or not at all."""
        whole = self.whole
        kinds = [
            Kind(str(name), int(rank), str(part), str(tenant)) for name, rank, part, tenant in frame.get("kinds", ())
        ]
        known = len(whole.kinds) + len(kinds)
        came = [(int(tick), int(kind), int(count)) for tick, kind, count in frame.get("in", ())]
        back = [(int(kind), int(count)) for kind, count in frame.get("back", ())]
        out = [(int(kind), int(count), float(took) / 1e3) for kind, count, took in frame.get("out", ())]
        units = [
            (int(kind), str(downstream), str(unit), int(count), float(amount))
            for kind, downstream, unit, count, amount in frame.get("units", ())
        ]
        at = float(frame["at"])
        if any(not 0 <= kind < known or count < 1 for kind, _, _, count, _ in units):
            raise ValueError("a frame counts units of kinds that no frame has named")
        named = [kind for _, kind, _ in came] + [kind for kind, _ in back] + [kind for kind, _, _ in out]
        if any(not 0 <= kind < known for kind in named) or any(count < 0 for _, _, count in came):
            raise ValueError("a frame counts items of kinds that no frame has named")
        if whole.items + sum(count for _, _, count in came) > MOST_ITEMS or len(whole.arrivals) > MOST_ARRIVALS:
            raise ValueError(f"more than {MOST_ITEMS:,} items are in it")
        if "pools" in frame:
            whole.pools = [
                RecordedPool(str(w), str(n), tuple(map(str, f)), int(places)) for w, n, f, places in frame["pools"]
            ] or whole.pools
        whole.kinds += kinds
        for tick, kind, count in came:
            again = min(count, self._again[kind])
            self._again[kind] -= again
            if count > again:
                whole.arrivals.setdefault(max(0, tick), []).append((kind, count - again))
                whole.items += count - again
        for kind, count in back:
            self._again[kind] += count
        for kind, count, took in out:
            whole.runs.setdefault(kind, []).append((count, max(0.0, took) / max(1, count)))
        for kind, downstream, unit, count, amount in units:
            theirs = whole.units.setdefault(kind, {}).setdefault((downstream, unit), [])
            theirs.append((count, max(0.0, amount) / count))
        whole.seconds = max(whole.seconds, at)
        whole.lost += int(frame.get("lost", 0))


def _lines(path: Path) -> Iterator[dict[str, Any] | str]:
    """Each line; a text says why there are no more."""
    try:
        with gzip.open(path, "rb") as file:
            while line := file.readline(LONGEST_LINE):
                if not line.endswith(b"\n"):
                    yield "its last line is not whole"
                    return
                try:
                    data = json.loads(line)
                except ValueError:
                    yield "a line of it is no JSON"
                    return
                yield data if isinstance(data, dict) else "a line of it is no frame"
    except EOFError:
        yield "its end is missing"
    except (gzip.BadGzipFile, zlib.error) as error:
        yield f"it is not whole, or no gzip file ({error})"
    except OSError as error:
        raise InvalidRequest(f"{path}: it cannot be read: {error.strerror or error}") from None


class RecordingFile:
    """A file that a recording is written to. Each frame can be read as soon as it is written."""

    def __init__(self, path: Path) -> None:
        self.items = self.lost = self.frames = 0
        try:
            self._file = gzip.open(path, "xb", compresslevel=6)  # noqa: SIM115 - closed by `close`
        except FileExistsError:
            raise InvalidRequest(f"{path}: the file exists already: name a new file") from None
        except OSError as error:
            raise InvalidRequest(f"{path}: it cannot be written: {error.strerror or error}") from None

    def add(self, lines: Iterable[bytes]) -> None:
        """Writes lines, and counts what is in them."""
        for line in lines:
            told = json.loads(line)
            self.items += sum(count for _, _, count in told.get("in", ()))
            self.lost += told.get("lost", 0)
            self.frames += FORMAT not in told
            self._file.write(line + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Ends the file. Harmless twice."""
        self._file.close()
