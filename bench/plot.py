"""Bars as SVG, drawn by hand: figures against their targets, readable in a browser and in a diff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, ROW, LEFT, RIGHT = 760, 34, 250, 150
ROOM = WIDTH - LEFT - RIGHT
#: A wait so many times as long as the quickest one is drawn cut off.
CUT = 30


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure. `asked` is its bound; `at_least` says which side of it is good."""

    label: str
    value: float
    asked: float
    unit: str
    at_least: bool

    @property
    def good(self) -> bool:
        """Whether the bound holds."""
        return self.value >= self.asked if self.at_least else self.value <= self.asked

    @property
    def share(self) -> float:
        """The figure as a share of its bound, as it is drawn: at most four, and four for anything above a bound of
        0."""
        return min(self.value / self.asked, 4.0) if self.asked else 4.0 * (self.value > 0)


def bars(title: str, note: str, rows: Sequence[Bar]) -> str:
    """An SVG picture: each figure as a share of its bound, with the bound as a line at one."""
    height = 74 + ROW * len(rows)
    longest = max([2.0, *(row.share for row in rows)])
    scale = ROOM / longest
    parts = _head(title, note, height)
    for number, row in enumerate(rows):
        colour = "#2a7f62" if row.good else "#b3452c"
        sign = "≥" if row.at_least else "≤"
        said = f"{_number(row.value)} {row.unit} ({sign} {_number(row.asked)})"
        parts += _bar(number, row.label, row.share * scale, colour, said)
    line = LEFT + scale
    parts += [
        f'<line x1="{line:.1f}" y1="56" x2="{line:.1f}" y2="{height - 8}" stroke="#16324f" stroke-dasharray="4 3"/>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def compared(title: str, note: str, rows: Sequence[tuple[str, float]]) -> str:
    """An SVG picture: a rate each, and the ratio of the first one to it."""
    longest = max([rate for _, rate in rows], default=1.0)
    parts = _head(title, note, 74 + ROW * len(rows))
    for number, (label, rate) in enumerate(rows):
        times = f" (1/{rows[0][1] / rate:.1f})" if number else ""
        colour = "#2a7f62" if label.startswith("tailrace") else "#7a8b99"
        parts += _bar(number, label, rate / longest * ROOM, colour, _number(rate) + times)
    return "\n".join([*parts, "</svg>"]) + "\n"


def waited(title: str, note: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """An SVG picture: a wait each, as a bar, over the longer one that only few exceed. A bar more than CUT times as
    long as the quickest is cut off, or the others could not be told apart."""
    quickest = min([late for _, _, late in rows], default=1.0)
    longest = max([late for _, _, late in rows if late <= CUT * quickest], default=1.0)
    if any(late > longest for _, _, late in rows):
        note += "; → goes on"
    parts = _head(title, note, 74 + ROW * len(rows))
    for number, (label, wait, late) in enumerate(rows):
        own = label.startswith("tailrace")
        pale, colour = ("#b5d5c9", "#2a7f62") if own else ("#d3dae0", "#7a8b99")
        told = f"{'→ ' if late > longest else ''}{_number(wait)} / {_number(late)} ms"
        parts += _bar(number, label, min(late / longest, 1.0) * ROOM, pale, told)
        parts.append(_length(number, min(wait / longest, 1.0) * ROOM, colour))
    return "\n".join([*parts, "</svg>"]) + "\n"


def stacked(pictures: Sequence[str]) -> str:
    """Pictures of this file, one below the other, as one."""
    if len(pictures) == 1:
        return pictures[0]
    heights = [int(picture.partition(f'viewBox="0 0 {WIDTH} ')[2].partition('"')[0]) for picture in pictures]
    tops = [sum(heights[:number]) for number in range(len(pictures))]
    placed = [
        picture.replace("<svg ", f'<svg y="{top}" width="{WIDTH}" height="{height}" ', 1)
        for picture, top, height in zip(pictures, tops, heights, strict=True)
    ]
    around = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {sum(heights)}">\n'
    return f"{around}{''.join(placed)}</svg>\n"


def curve(title: str, note: str, values: Sequence[float], unit: str) -> str:
    """An SVG picture: a figure over a run, from zero up; its largest and its last value are told."""
    left, top, wide, high = 70, 70, WIDTH - 210, 240
    most = max([*values, 1e-9])
    across = wide / max(1, len(values) - 1)
    points = [(left + number * across, top + high * (1 - value / most)) for number, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    end = points[-1] if points else (left, top + high)
    parts = [
        *_head(title, note, top + high + 30),
        f'<path d="M{left} {top}V{top + high}H{left + wide}" fill="none" stroke="#16324f"/>',
        f'<text x="{left - 8}" y="{top + 5}" text-anchor="end" fill="#16324f">{_number(most)}</text>',
        f'<polyline points="{line}" fill="none" stroke="#2a7f62" stroke-width="2"/>',
    ]
    if values:
        said = f"{_number(values[-1])} {unit}"
        parts.append(f'<text x="{end[0] + 8:.1f}" y="{end[1] + 4:.1f}" fill="#16324f">{escape(said)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _head(title: str, note: str, height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="16" font-weight="600" fill="#16324f">{escape(title)}</text>',
        f'<text x="16" y="46" fill="#5b6b7a">{escape(note)}</text>',
    ]


def _bar(number: int, label: str, length: float, colour: str, said: str) -> list[str]:
    top = 62 + ROW * number
    return [
        f'<text x="{LEFT - 10}" y="{top + 16}" text-anchor="end" fill="#16324f">{escape(label)}</text>',
        _length(number, length, colour),
        f'<text x="{LEFT + length + 8:.1f}" y="{top + 16}" fill="#16324f">{escape(said)}</text>',
    ]


def _length(number: int, length: float, colour: str) -> str:
    return f'<rect x="{LEFT}" y="{62 + ROW * number}" width="{length:.1f}" height="22" rx="3" fill="{colour}"/>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
