# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Where a fabric's elements are drawn: tiers of switches above a row of hosts, in inches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from netfold.topologies.fabric import Fabric, SwitchRole

Points = NDArray[np.float64]
"""A line in inches, of shape (points, 2)."""

TIERS = {
    SwitchRole.PLAIN: 1,
    SwitchRole.LEAF: 1,
    SwitchRole.AGGREGATION: 2,
    SwitchRole.SPINE: 3,
    SwitchRole.CORE: 3,
}
MAX_HOSTS = 24
"""More hosts are drawn as one box for each switch."""

MAX_NAMED_SWITCHES = 16
"""A tier of more switches is drawn without their names."""

LETTER = 0.085
"""Width of a letter of a name, inches."""

HOST_GAP, SWITCH_GAP, RACK_GAP = 0.2, 0.35, 0.3
TIER_STEEPNESS, TIER_HEIGHTS = 0.14, (1.25, 2.0)
"""Distance of tiers: its part of the width, and its limits in inches."""

HOST_HEIGHT, ARC_HEIGHT = 1.0, 0.5
BOX_HEIGHT, DOT = 0.42, 0.13
MIN_WIDTH, CROWDED_WIDTH, FULL_PITCH = 6.8, 13.0, 0.5
"""A crowded fabric has about CROWDED_WIDTH; elements closer than FULL_PITCH are drawn with thinner lines."""


@dataclass(frozen=True)
class DrawnNode:
    """A drawn element: its middle and its box, inches. `members`: the hosts that it stands for, or the one element."""

    name: str
    members: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float
    is_named: bool = True


@dataclass(frozen=True)
class TierLabel:
    """Label next to a crowded tier: the kind of its switches."""

    text: str
    y: float


@dataclass(frozen=True)
class FabricLayout:
    """`place_of`: the drawn element of each host and switch. `scale`: of widths and distances of lines, up to 1."""

    switches: tuple[DrawnNode, ...]
    hosts: tuple[DrawnNode, ...]
    tiers: tuple[TierLabel, ...]
    place_of: Mapping[str, DrawnNode]
    width: float
    height: float
    scale: float = 1.0

    def line(self, a: str, b: str) -> Points:
        """The line from the middle of `a` to that of `b`. Within a tier it passes over the switches between them."""
        start, end = self.place_of[a], self.place_of[b]
        ends: Points = np.array([[start.x, start.y], [end.x, end.y]])
        if not self.is_arc(a, b):
            return ends
        along = np.linspace(0.0, 1.0, 25)[:, None]
        arc: Points = ends[0] + (ends[1] - ends[0]) * along
        arc[:, 1] += 4 * ARC_HEIGHT * (along * (1 - along))[:, 0]
        return arc

    def is_arc(self, a: str, b: str) -> bool:
        """Return whether other elements of their tier stand between them."""
        start, end = self.place_of[a], self.place_of[b]
        left, right = sorted((start.x, end.x))
        return any(s.y == start.y == end.y and left < s.x < right for s in self.switches)


def lay_out(fabric: Fabric) -> FabricLayout:
    """Hosts stand below their switch, switches over the middle of their hosts; those without hosts share their tier's
    width."""
    hosts_of: dict[str, list[str]] = defaultdict(list)
    for host in fabric.hosts:
        hosts_of[fabric.attachment(host.name)].append(host.name)
    tiers: dict[int, list[str]] = defaultdict(list)
    for switch in fabric.switches:
        tiers[TIERS[switch.role]].append(switch.name)
    is_grouped = len(fabric.hosts) > MAX_HOSTS
    is_crowded = {tier: len(names) > MAX_NAMED_SWITCHES for tier, names in tiers.items()}
    lowest = HOST_HEIGHT if fabric.hosts else 0.0
    pitch = FULL_PITCH
    if any(is_crowded.values()):
        pitch = min(pitch, CROWDED_WIDTH / max(len(n) for t, n in tiers.items() if is_crowded[t]))
    dot = min(DOT, 0.7 * pitch)

    middle, host_at, width = _columns(
        fabric, hosts_of, is_grouped, pitch if any(is_crowded.values()) else None
    )
    spans = [len(n) * pitch if is_crowded[t] else _tier_width(n) for t, n in tiers.items()]
    width = max(width, MIN_WIDTH, *spans)
    step = float(np.clip(TIER_STEEPNESS * width, *TIER_HEIGHTS))
    heights = {tier: lowest + step * number for number, tier in enumerate(sorted(tiers))}
    shift = (width - _extent(middle)) / 2 if middle else 0.0
    switches = []
    for tier, names in tiers.items():
        free = [name for name in names if name not in middle]
        for name in names:
            x = middle[name] + shift if name in middle else (free.index(name) + 0.5) * width / len(free)
            crowded = is_crowded[tier]
            box = (dot, dot) if crowded else (_box_width(name), BOX_HEIGHT)
            switches.append(DrawnNode(name, (name,), x, heights[tier], *box, is_named=not crowded))
    hosts = [_host(name, members, x + shift, pitch) for name, members, x in host_at]
    labels = [
        TierLabel(f"{len(names)} {_kind(fabric, names)}", heights[tier])
        for tier, names in sorted(tiers.items())
        if is_crowded[tier]
    ]
    drawn = (*switches, *hosts)
    return FabricLayout(
        tuple(switches),
        tuple(hosts),
        tuple(labels),
        {member: place for place in drawn for member in place.members},
        width,
        max(heights.values(), default=0.0),
        float(np.clip(0.7 * pitch / FULL_PITCH, 0.2, 0.7)) if any(is_crowded.values()) else 1.0,
    )


def _columns(
    fabric: Fabric, hosts_of: Mapping[str, Sequence[str]], is_grouped: bool, crowded_pitch: float | None
) -> tuple[dict[str, float], list[tuple[str, tuple[str, ...], float]], float]:
    """The middles of switches with hosts, their hosts, and the width of all, from 0."""
    middle: dict[str, float] = {}
    hosts: list[tuple[str, tuple[str, ...], float]] = []
    pitch = max((len(h.name) for h in fabric.hosts), default=1) * LETTER + HOST_GAP
    x = 0.0
    for switch in fabric.switches:
        own = hosts_of.get(switch.name, [])
        if not own:
            continue
        if is_grouped:
            name = f"{len(own)}" if crowded_pitch else f"{len(own)} hosts"
            span = crowded_pitch or max(_box_width(name), _box_width(switch.name)) + SWITCH_GAP
            middle[switch.name] = x + span / 2
            hosts.append((name, tuple(own), x + span / 2))
            x += span
            continue
        span = max(len(own) * pitch, _box_width(switch.name) + SWITCH_GAP)
        first = x + (span - (len(own) - 1) * pitch) / 2
        hosts += [(name, (name,), first + pitch * number) for number, name in enumerate(own)]
        middle[switch.name] = x + span / 2
        x += span + RACK_GAP
    return middle, hosts, x


def _extent(middle: Mapping[str, float]) -> float:
    """Twice the middle of the outermost columns: what centers them."""
    return min(middle.values()) + max(middle.values())


def _tier_width(names: Sequence[str]) -> float:
    return sum(_box_width(name) + SWITCH_GAP for name in names)


def _box_width(name: str) -> float:
    return max(0.62, len(name) * LETTER + 0.2)


def _host(name: str, members: tuple[str, ...], x: float, pitch: float) -> DrawnNode:
    if name in members:
        return DrawnNode(name, members, x, 0.0, DOT, DOT)
    width = len(name) * LETTER * 0.9 + 0.1
    if width < 0.9 * pitch or pitch == FULL_PITCH:
        return DrawnNode(name, members, x, 0.0, width, 0.24)
    return DrawnNode(name, members, x, 0.0, 0.7 * pitch, 0.7 * pitch, is_named=False)


def _kind(fabric: Fabric, names: Sequence[str]) -> str:
    roles = {fabric.switch(name).role for name in names}
    plural = {
        SwitchRole.LEAF: "leaves",
        SwitchRole.SPINE: "spines",
        SwitchRole.AGGREGATION: "aggregation switches",
    }
    plural |= {SwitchRole.CORE: "core switches", SwitchRole.PLAIN: "switches"}
    return plural[roles.pop()] if len(roles) == 1 else "switches"


def beside(line: Points, offset: float) -> Points:
    """The line, shifted by `offset` inches to the right of its direction."""
    steps = np.diff(line, axis=0)
    steps /= np.maximum(np.hypot(steps[:, 0], steps[:, 1]), 1e-9)[:, None]
    at = np.vstack([steps[:1], (steps[:-1] + steps[1:]) / 2, steps[-1:]])
    return line + offset * np.column_stack([at[:, 1], -at[:, 0]])


def point_on(line: Points, part: float) -> tuple[Points, Points]:
    """The point at this part of the line's length, and the direction there."""
    steps = np.array([np.hypot(*(b - a)) for a, b in pairwise(line)])
    wanted = part * steps.sum()
    for number, step in enumerate(steps):
        if wanted <= step or number == len(steps) - 1:
            direction = (line[number + 1] - line[number]) / max(step, 1e-9)
            return line[number] + direction * wanted, direction
        wanted -= step
    raise AssertionError("a line has at least two points")
