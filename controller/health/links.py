# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which links between switches work. P4Runtime says nothing of ports, so each switch is given a READ
packet to send to each of its neighbors now and then; the neighbor's answer to the controller proves the
link in that direction. A target that reports ports (gNMI) is believed at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import finsy as fy

from netfold.controller.lifecycle.book import Book
from netfold.controller.switches.desired import Setting
from netfold.controller.switches.fleet import Fleet
from netfold.controller.switches.management import SlotView, slot_packet, slot_view
from netfold.controller.switches.session import SwitchAwayError
from netfold.topologies.fabric import Switch
from netfold.traffic.packets.wire import Kind

LOST = 5
"""Probes in a row, the last one just sent, without an answer to any: the link counts as down."""

LATE_S = 0.05
"""A controller that woke up so much too late has not had the time to hear all answers, and on a machine that is so busy
switches that run beside it may not have had the time to give them."""

LATE_COUNTS = 0.25
"""Of a probe, by which its silence then counts: links that are down are found all the same."""

PROBES = 500
"""At most so many a second, in the whole fabric."""

READ_S = 1.0

Hop = tuple[str, str]


@dataclass
class _Probed:
    """One direction of a link. `lost` counts probes since the last that arrived, `seen`: one has ever arrived."""

    lost: float = 0.0
    seen: bool = False


async def oversleep(seconds: float) -> float:
    """Sleeps so long, and tells by how much longer it was."""
    due = time.monotonic() + seconds
    await asyncio.sleep(seconds)
    return time.monotonic() - due


class LinkProbes:
    """`changed(down)` is called with all links that are down, whenever that set is another. `run` probes
    until it is canceled; `period` 0 turns probing off. `sleep` waits and tells how late it was."""

    def __init__(
        self,
        setting: Setting,
        lanes: int,
        fleet: Fleet,
        book: Book,
        changed: Callable[[frozenset[frozenset[str]]], None],
        period: float,
        sleep: Callable[[float], Awaitable[float]] = oversleep,
    ) -> None:
        self._setting = setting
        self._lanes = lanes
        self._fleet = fleet
        self._book = book
        self._worked = book.worked
        self._changed = changed
        self._period = period and max(period, 2 * len(setting.fabric.links) / PROBES)
        self._sleep = sleep
        self._counts = 1.0
        fabric = setting.fabric
        self._hops: dict[Hop, _Probed] = {
            hop: _Probed(seen=hop in self._worked)
            for link in fabric.links
            if not fabric.is_host(link.a) and not fabric.is_host(link.b)
            for hop in ((link.a, link.b), (link.b, link.a))
        }
        self._neighbor = {(s.name, p): n for s in fabric.switches for n, p in fabric.ports[s.name].items()}
        self._own_ways = {s.name: _own_ways(setting, s) for s in fabric.switches}
        self._reported: set[frozenset[str]] = set()
        self._down: frozenset[frozenset[str]] = frozenset()
        self._reads: dict[tuple[str, int], asyncio.Future[SlotView]] = {}
        self._request = 0

    async def run(self) -> None:
        if not self._period:
            return
        while True:
            began = time.monotonic()
            for hop, state in self._hops.items():
                await self._probe(hop, state)
            self._judge()
            late = await self._sleep(max(0.0, self._period - (time.monotonic() - began)))
            self._counts = 1.0 if late < LATE_S else LATE_COUNTS

    def reported(self, switch: str, near: str, down: bool) -> None:
        """What the switch itself says of a port."""
        link = frozenset((switch, near))
        if self._setting.fabric.is_host(near):
            return
        (self._reported.add if down else self._reported.discard)(link)
        self._judge()

    def packet_in(self, switch: str, packet: fy.P4PacketIn) -> None:
        view = slot_view(packet)
        if view is None or view.tree != self._setting.mark:
            return
        if view.ingress_port in self._own_ways[switch].values():
            future = self._reads.pop((switch, view.request), None)
            if future is not None and not future.done():
                future.set_result(view)
            return
        near = self._neighbor.get((switch, view.ingress_port))
        probed = None if near is None else self._hops.get((near, switch))
        if near is not None and probed is not None:
            probed.lost, probed.seen = 0.0, True
            if frozenset((near, switch)) in self._down:
                self._judge()

    def pipes(self, switch: str) -> list[int]:
        """The pipes of a switch that hold slots, the controller's own first."""
        fabric, ways = self._setting.fabric, self._own_ways[switch]
        used = {fabric.switch(switch).pipe(p) for p in fabric.ports[switch].values()}
        return [*ways, *sorted(used - ways.keys())]

    async def manage(self, switch: str, kind: Kind, slot: int, pipe: int | None = None) -> SlotView:
        """READ or RESET a slot, of the controller's own pipe or of another one, by way of a loopback port.
        Raises SwitchAwayError when no answer comes within a second, or no way leads to the pipe."""
        ways = self._own_ways[switch]
        own = next(iter(ways))
        chosen = own if pipe is None else pipe
        if chosen not in ways:
            raise SwitchAwayError(
                f"slot {slot} of switch {switch} is out of reach: pipe {chosen} has no loopback port"
            )
        egress = 0 if chosen == own else ways[chosen]
        self._request = (self._request + 1) & 0xFFFF
        key = (switch, self._request)
        future = self._reads[key] = asyncio.get_running_loop().create_future()
        try:
            packet = self._packet(switch, kind, slot, self._request)
            await self._fleet.sessions[switch].packet_out(packet, egress)
            return await asyncio.wait_for(future, READ_S)
        except TimeoutError:
            raise SwitchAwayError(
                f"switch {switch} did not answer for slot {slot} within {READ_S:g} s"
            ) from None
        finally:
            self._reads.pop(key, None)

    async def _probe(self, hop: Hop, state: _Probed) -> None:
        sender, receiver = hop
        if not (self._fleet.health(sender).ready and self._fleet.health(receiver).ready):
            state.lost = 0.0
            return
        port = self._setting.fabric.ports[sender][receiver]
        state.lost += self._counts  # its answer may be there before this goes on
        try:
            await self._fleet.sessions[sender].packet_out(self._packet(sender, Kind.READ, 0, 0), port)
        except SwitchAwayError:
            state.lost = 0.0

    def _packet(self, switch: str, kind: Kind, slot: int, request: int) -> bytes:
        own = self._setting.addresses.switches[switch].loopback
        return slot_packet(
            kind, mark=self._setting.mark, slot=slot, request=request, sender=own, lanes=self._lanes
        )

    def _judge(self) -> None:
        """A link that never worked is not down: its target may not answer probes. What has worked is remembered: a link
        that breaks while no controller is there is down to the next."""
        new = {hop for hop, state in self._hops.items() if state.seen} - self._worked
        if new:
            with self._book.change():
                self._book.have_worked(new)
            self._worked |= new
        silent = {frozenset(hop) for hop, state in self._hops.items() if state.seen and state.lost >= LOST}
        down = frozenset(silent | self._reported)
        if down != self._down:
            self._down = down
            self._changed(down)


def _own_ways(setting: Setting, switch: Switch) -> dict[int, int]:
    """The ports by which the controller's packets come in, by pipe: its own port first, then loopback ports."""
    cpu_port = setting.device(switch.name).cpu_port
    ways = {switch.pipe(cpu_port): cpu_port}
    for loopback in switch.loopbacks:
        ways.setdefault(switch.pipe(loopback.port), loopback.port)
    return ways
