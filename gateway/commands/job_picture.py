"""A picture of a tree of jobs: a box for each job with its progress, and arrows from the jobs that feed it."""

from __future__ import annotations

from html import escape

from ...model.job import JobStatus, TreeStatus

WIDTH, HEIGHT, GAP, MARGIN, HEAD = 190, 64, 46, 24, 52
#: Characters of a name in a box, and the replacement for characters that XML cannot have.
SHOWN, UNSHOWN = 22, "\ufffd"
_SUCCEEDED, _FAILED, _PENDING, _LINE = "#2e7d5b", "#c0392b", "#d7dde3", "#8795a1"


def picture(tree: TreeStatus) -> str:
    """The tree as SVG, its root at the top."""
    depth: dict[str, int] = {}
    jobs = {each.name: each for each in tree.jobs}

    def level(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max((level(parent) for parent in jobs[name].parents), default=-1)
        return depth[name]

    rows: dict[int, list[JobStatus]] = {}
    for each in tree.jobs:
        rows.setdefault(level(each.name), []).append(each)
    across = max(map(len, rows.values()))
    width = 2 * MARGIN + across * WIDTH + (across - 1) * GAP
    height = HEAD + MARGIN + len(rows) * HEIGHT + (len(rows) - 1) * GAP
    places: dict[str, tuple[float, float]] = {}
    for at, row in sorted(rows.items()):
        left = (width - len(row) * WIDTH - (len(row) - 1) * GAP) / 2
        for number, each in enumerate(row):
            places[each.name] = (left + number * (WIDTH + GAP), HEAD + at * (HEIGHT + GAP))
    title = _text(f"{tree.type} {tree.id}: {tree.state}", 80)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{MARGIN}" y="28" font-size="15" font-weight="600" fill="#22303c">{title}</text>',
    ]
    for each in tree.jobs:
        x, y = places[each.name]
        for parent in each.parents:
            from_x, from_y = places[parent][0] + WIDTH / 2, places[parent][1] + HEIGHT
            middle = x + WIDTH / 2
            dash = ' stroke-dasharray="5 4"' if each.gather else ""
            lines.append(
                f'<path d="M{from_x:g} {from_y:g} C{from_x:g} {from_y + GAP / 2:g} {middle:g} {y - GAP / 2:g} '
                f'{middle:g} {y:g}" fill="none" stroke="{_LINE}"{dash}/>'
            )
    for each in tree.jobs:
        lines += _box(each, *places[each.name])
    return "\n".join([*lines, "</svg>", ""])


def _box(job: JobStatus, x: float, y: float) -> list[str]:
    known = max(1, job.pending + job.succeeded + job.failed)
    inner = WIDTH - 20
    won, lost = inner * job.succeeded / known, inner * job.failed / known
    state = "complete" if job.complete_at else "sealed" if job.sealed else "open"
    how = " · gathers" if job.gather else " · each" if job.each else ""
    counts = f"{job.pending} pending, {job.succeeded} done" + (f", {job.failed} failed" if job.failed else "")
    edge = _SUCCEEDED if job.complete_at else _LINE
    return [
        f"<g><title>{_text(f'{job.name}: {state}, {counts}', 200)}</title>",
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#f7f9fb" stroke="{edge}"/>',
        f'<text x="{x + 10:g}" y="{y + 20:g}" font-size="13" fill="#22303c">{_text(job.name, SHOWN)}'
        f'<tspan dx="6" font-size="10" fill="#66788a">{state}{how}</tspan></text>',
        f'<text x="{x + 10:g}" y="{y + 37:g}" font-size="11" fill="#66788a">{counts}</text>',
        f'<rect x="{x + 10:g}" y="{y + 47:g}" width="{inner}" height="7" rx="3" fill="{_PENDING}"/>',
        f'<rect x="{x + 10:g}" y="{y + 47:g}" width="{won:g}" height="7" fill="{_SUCCEEDED}"/>',
        f'<rect x="{x + 10 + won:g}" y="{y + 47:g}" width="{lost:g}" height="7" fill="{_FAILED}"/></g>',
    ]


def _text(text: str, most: int) -> str:
    return escape("".join(each if each.isprintable() else UNSHOWN for each in text[:most]))
