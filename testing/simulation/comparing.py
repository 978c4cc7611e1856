"""Records of one run of `tailrace simulate` against those of another (recording.py): how many worlds are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ...model.errors import UserError
from .recording import WorldRecord, difference

#: Differences that are shown.
SHOWN = 5
_WORDS = {
    "same": "the same in every message",
    "alike": "with as many messages of each kind",
    "fates": "with each item's runs ended the same way",
    "differ": "otherwise",
}


@dataclass(slots=True)
class Comparison:
    """The comparison of two runs. `counts`: number of worlds by how alike they are; `first`: some seeds by how alike
    they are, with the place where they differ first. `missing`: seeds that the earlier run did not have."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    missing: int = 0

    @property
    def differ(self) -> int:
        """Number of worlds in which an item's runs ended otherwise."""
        return self.counts["differ"]

    def facts(self) -> dict[str, Any]:
        """Figures of the comparison, for --json."""
        return {**{how: self.counts[how] for how in _WORDS}, "missing": self.missing, "first": self.first}

    def text(self) -> str:
        """Text of the comparison, for people."""
        lines = [f"of the {self.counts.total()} worlds that the earlier run recorded:"]
        for how, words in _WORDS.items():
            if self.counts[how]:
                lines.append(f"  {self.counts[how]} {words}")
                lines += [f"    seed {seed}: {where}" for seed, where in self.first.get(how, ())]
        if self.missing:
            lines.append(f"  {self.missing} more that the earlier run did not record")
        return "\n".join(lines)


def compared(before: Iterable[WorldRecord], after: Iterable[WorldRecord]) -> Comparison:
    """Compares the records of two runs by seed."""
    known = {record.seed: record for record in before}
    found = Comparison()
    for record in after:
        if record.seed not in known:
            found.missing += 1
            continue
        how, where = difference(known[record.seed], record)
        found.counts[how] += 1
        if where and len(shown := found.first.setdefault(how, [])) < SHOWN:
            shown.append((record.seed, where))
    return found


def read(file: Path) -> list[WorldRecord]:
    """Reads the records in a file. Raises UserError when it has none."""
    try:
        return [msgspec.json.decode(line, type=WorldRecord) for line in file.read_bytes().splitlines() if line]
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; expected a file that `tailrace simulate --record` wrote") from error
    except msgspec.DecodeError as error:
        raise UserError(f"{file}: {error}; expected a file that `tailrace simulate --record` wrote") from error


def check(file: Path) -> None:
    """Checks that records can be written to a file, before many worlds are told for them. Raises UserError when they
    cannot."""
    try:
        file.open("ab").close()
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; --record needs a file that can be written") from error


def write(file: Path, records: Iterable[WorldRecord]) -> None:
    """Writes records to a file, a line each."""
    file.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
