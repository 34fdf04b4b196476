# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the steps of explanation/how-a-sum-is-made.md as a picture that moves, which the web page shows, too.

The picture is made of the page's table alone. `python docs/sum_picture.py` writes it, and a test compares the two."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "explanation/how-a-sum-is-made.md"
PICTURE = DOCS.parent / "controller/web/static/sum.svg"

SECONDS_PER_STEP = 3.0
STILL_STEPS = 1
"""How long the last step stays before the picture begins again."""

PLACES = {
    "spine1": (330, 60),
    "leaf1": (200, 170),
    "leaf2": (460, 170),
    "h1": (120, 280),
    "h2": (280, 280),
    "h3": (460, 280),
}
"""The middle of each node, in pixels."""
LINKS = (("spine1", "leaf1"), ("spine1", "leaf2"), ("leaf1", "h1"), ("leaf1", "h2"), ("leaf2", "h3"))
SLOTS = {"spine1": (440, 30), "leaf1": (10, 140)}
"""The upper left corner of the box that shows a node's slot."""

STYLE = """
text{font:13px system-ui,sans-serif;fill:#1d2430}.small{font-size:12px}.bold{font-weight:600}
.link{stroke:#a9b1be;stroke-width:2}.node,.slot{fill:#fff;stroke:#566173;stroke-width:1.5}.slot{fill:#eef1f5}
.gradient{fill:#0072b2}.result{fill:#00805d}.packet text{fill:#fff;font-weight:600}.lost{stroke:#c1121f;stroke-width:3}
@media (prefers-color-scheme:dark){text{fill:#e6eaf0}.node{fill:#1d2430}.slot{fill:#2a3340}.node,.slot{stroke:#9fabba}
.link{stroke:#4a5565}.lost{stroke:#ff5c5c}}
"""


@dataclass(frozen=True)
class Step:
    """A row of the page's table.

    Attributes:
        number: the step, from 1.
        packet: the packet that arrives, in words.
        nodes: the nodes that it arrives at.
        slot: tag, bitmap and lane after it; None for a RESULT, which has no slot.
        verdict: the verdict's name in the table.
        leaves: what leaves, in words."""

    number: int
    packet: str
    nodes: tuple[str, ...]
    slot: tuple[str, str, str] | None
    verdict: str
    leaves: str

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The nodes that each copy of the packet passes in this step, from its sender on."""
        if self.slot is None:
            below = {"leaf1": ("h1", "h2"), "leaf2": ("h3",)}
            return tuple(("spine1", node, host) for node in self.nodes for host in below[node])
        sender = re.search(r" of (\w+)", self.packet)
        assert sender is not None, self.packet
        return ((sender[1], "leaf2", *self.nodes),) if sender[1] == "h3" else ((sender[1], *self.nodes),)

    def is_lost(self, path: tuple[str, ...]) -> bool:
        return f"copy for {path[-1]} is lost" in self.leaves


def steps() -> list[Step]:
    """The rows of the page's table."""
    rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| \d", line)]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return [
        Step(
            number=int(number),
            packet=packet,
            nodes=tuple(nodes.split(", ")),
            slot=(re.findall(r"tag (\d+)", packet)[0], bitmap, lane) if bitmap else None,
            verdict=verdict,
            leaves=leaves,
        )
        for number, packet, nodes, _, bitmap, lane, verdict, leaves in cells
    ]


class Timeline:
    """Keyframes of the picture's elements. One turn shows all steps, one after the other."""

    def __init__(self, count: int) -> None:
        self._steps = count + STILL_STEPS
        self._rules: dict[str, str] = {}

    @property
    def css(self) -> str:
        duration = self._steps * SECONDS_PER_STEP
        names = "".join(
            f"@keyframes {name}{{{frames}}}.{name}{{animation:{name} {duration:g}s linear infinite}}\n"
            for frames, name in self._rules.items()
        )
        still = "*{animation-delay:-11s!important;animation-play-state:paused!important}"  # the complete sum
        return f"{names}@media (prefers-reduced-motion:reduce){{{still}}}\n"

    def shown(self, start: float, end: float) -> str:
        """The class of an element that is there from `start` to `end`, in steps from the beginning."""
        before, after = self._percent(start), self._percent(end)
        return self._rule(
            f"0%,{before:g}%{{opacity:{0 if before else 1}}}{before + 0.01:g}%,{after - 0.01:g}%{{opacity:1}}"
            f"{after:g}%,100%{{opacity:{1 if after >= 100 else 0}}}"
        )

    def moved(self, start: float, end: float, path: list[tuple[float, float]]) -> str:
        """The class of an element that goes through the points of `path` between two times."""
        points = [(start + (end - start) * i / (len(path) - 1), point) for i, point in enumerate(path)]
        frames = "".join(
            f"{self._percent(t):g}%{{transform:translate({x:g}px,{y:g}px)}}" for t, (x, y) in points
        )
        return self._rule(frames)

    def _percent(self, time: float) -> float:
        return min(100.0, round(100 * time / self._steps, 2))

    def _rule(self, frames: str) -> str:
        return self._rules.setdefault(frames, f"a{len(self._rules)}")


def _text(x: float, y: float, words: str, classes: str = "", *, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{classes}">{words}</text>'


def _network() -> Iterator[str]:
    for one, other in LINKS:
        (x1, y1), (x2, y2) = PLACES[one], PLACES[other]
        yield f'<line class="link" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'
    for name, (x, y) in PLACES.items():
        yield f'<rect class="node" x="{x - 34}" y="{y - 16}" width="68" height="32" rx="6"/>{_text(x, y + 5, name)}'


def _slot(
    node: str, history: list[tuple[float, tuple[str, str, str]]], timeline: Timeline, end: float
) -> Iterator[str]:
    x, y = SLOTS[node]
    yield f'<rect class="slot" x="{x}" y="{y}" width="116" height="66" rx="4"/>'
    times = [time for time, _ in history[1:]] + [end]
    for (start, (tag, bitmap, lane)), until in zip(history, times, strict=True):
        lines = (f"tag {tag}", f"bitmap {bitmap}", f"lane {lane}")
        words = "".join(_text(x + 10, y + 19 + 18 * i, line, anchor="start") for i, line in enumerate(lines))
        yield f'<g class="{timeline.shown(start, until)}">{words}</g>'


def _packets(step: Step, timeline: Timeline) -> Iterator[str]:
    start = step.number - 1
    kind = "gradient" if step.slot else "result"
    value = re.findall(r"\d+", step.packet)[0]
    for path in step.paths:
        points: list[tuple[float, float]] = [PLACES[name] for name in path]
        lost = step.is_lost(path)
        if lost:
            (x1, y1), (x2, y2) = points[-2:]
            points[-1] = ((x1 + x2) / 2, (y1 + y2) / 2)
        place = timeline.moved(start, start + 0.6, points)
        yield (
            f'<g class="{timeline.shown(start, start + 0.7)}"><g class="packet {place}">'
            f'<rect class="{kind}" x="-17" y="-12" width="34" height="24" rx="4"/>{_text(0, 5, value)}</g></g>'
        )
        if lost:
            x, y = points[-1]
            cross = f'<path class="lost" d="M{x - 11:g} {y - 11:g}l22 22m0 -22l-22 22"/>{_text(x + 42, y + 5, "lost")}'
            yield f'<g class="{timeline.shown(start + 0.6, start + 1)}">{cross}</g>'


def _caption(step: Step, timeline: Timeline, end: float) -> str:
    found = f"{step.packet} arrives at {' and '.join(step.nodes)}"
    leaves = f"; leaves: {step.leaves}" if step.leaves else ""
    words = _text(330, 335, f"{step.number}. {found}", "bold")
    words += f'<g class="{timeline.shown(step.number - 0.4, end)}">{_text(330, 357, f"{step.verdict}{leaves}")}</g>'
    return f'<g class="{timeline.shown(step.number - 1, end)}">{words}</g>'


def draw() -> str:
    """The picture as SVG."""
    rows = steps()
    timeline = Timeline(len(rows))
    total = float(len(rows) + STILL_STEPS)
    histories = {node: [(0.0, ("0", "00", "0"))] for node in SLOTS}
    for step in rows:
        if step.slot is not None:
            histories[step.nodes[0]].append((step.number - 0.4, step.slot))
    body = [*_network()]
    for node, history in histories.items():
        body += _slot(node, history, timeline, total)
    for step in rows:
        body += _packets(step, timeline)
        body.append(_caption(step, timeline, total if step is rows[-1] else step.number))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 375" width="660" height="375" role="img">\n'
        "<!-- SPDX-FileCopyrightText: 2026 The netfold authors; SPDX-License-Identifier: Apache-2.0 -->\n"
        "<title>Three workers' packets through a leaf and a spine, slot by slot, with a loss</title>\n"
        f"<style>{STYLE}{timeline.css}</style>\n" + "\n".join(body) + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(draw())
