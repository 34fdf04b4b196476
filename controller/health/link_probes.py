# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which links between switches work.

The controller sends READ packets from each switch to its neighbors; a neighbor's answer to the controller proves the
link in that direction. Silence alone proves nothing: a switch on a busy machine answers late. So the port counters of
both ends decide: a link is down when the sender's departures grow, the receiver's arrivals do not, and probes get no
answer. A switch that reports its ports (gNMI) is believed at once."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from netfold.controller.jobs.store import StoreError
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.fleet import Fleet
from netfold.controller.switches.management import SlotView, management_packet
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.protocol.wire import Kind

log = logging.getLogger(__name__)

MAX_LOST = 5
"""Probes in a row without an answer, the last one just sent, after which a link may be down."""

SUSPECT_LOST = 3
"""Probes in a row without an answer, after which port counters are read."""

MIN_STALLED = 2
"""Readings in which the sender has sent and the receiver has received nothing: the link is down."""

MAX_IDLE = 10
"""Readings in which the sender has sent nothing, not even probes: the link counts as down. (A Tofino drops packets to a
port that is down before it counts them.)"""

MAX_PROBES_PER_S = 500
"""In the whole fabric."""

Hop = tuple[str, str]
"""One direction of a link: from and to."""


@dataclass
class _HopState:
    """`lost`: probes since the last answer; `seen`: a probe has been answered at some time. `baseline`: departures and
    arrivals when the hop became suspect; `stalled`, `idle`: readings since then (MIN_STALLED, MAX_IDLE)."""

    lost: int = 0
    seen: bool = False
    baseline: tuple[int, int] | None = None
    stalled: int = 0
    idle: int = 0

    def reset(self) -> None:
        self.lost, self.baseline, self.stalled, self.idle = 0, None, 0, 0

    def on_counters(self, sent: int, received: int) -> None:
        if self.baseline is None or sent < self.baseline[0] or received < self.baseline[1]:
            self.baseline = (sent, received)  # the first reading, or the first after a restart
        elif received > self.baseline[1]:
            self.reset()
        elif sent > self.baseline[0]:
            self.stalled += 1
        else:
            self.idle += 1

    @property
    def is_down(self) -> bool:
        is_proven = self.stalled >= MIN_STALLED or self.idle >= MAX_IDLE
        return self.seen and self.lost >= MAX_LOST and is_proven


class LinkProbes:
    """`on_change(down)` is called with all links that are down, after each change of that set. `run` probes until it is
    canceled; `period_s` 0 turns probing off."""

    def __init__(
        self,
        config: FabricConfig,
        lanes: int,
        fleet: Fleet,
        registry: JobRegistry,
        on_change: Callable[[frozenset[frozenset[str]]], None],
        period_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._config = config
        self._lanes = lanes
        self._fleet = fleet
        self._registry = registry
        self._worked = registry.worked
        self._on_change = on_change
        self._period_s = period_s
        self._sleep = sleep
        fabric = config.fabric
        self._hops: dict[Hop, _HopState] = {
            hop: _HopState(seen=hop in self._worked)
            for link in fabric.links
            if not fabric.is_host(link.a) and not fabric.is_host(link.b)
            for hop in ((link.a, link.b), (link.b, link.a))
        }
        self._turn = deque(self._hops)
        self._neighbor = {(s.name, p): n for s in fabric.switches for n, p in fabric.ports[s.name].items()}
        self._reported: set[frozenset[str]] = set()
        self._down: frozenset[frozenset[str]] = frozenset()

    async def run(self) -> None:
        if not self._period_s:
            return
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            await self._probe(self._next_hops())
            await self._read_suspects()
            self._update_down_links()
            await self._sleep(max(0.0, self._period_s - (clock() - began)))

    def reported(self, switch: str, neighbor: str, down: bool) -> None:
        """The switch itself reports a port."""
        if self._config.fabric.is_host(neighbor):
            return
        (self._reported.add if down else self._reported.discard)(frozenset((switch, neighbor)))
        self._update_down_links()

    def on_answer(self, switch: str, view: SlotView) -> None:
        """A switch has received a probe of a neighbor."""
        neighbor = self._neighbor.get((switch, view.ingress_port))
        state = None if neighbor is None else self._hops.get((neighbor, switch))
        if neighbor is None or state is None:
            return
        state.reset()
        state.seen = True
        if frozenset((neighbor, switch)) in self._down:
            self._update_down_links()

    # ---- probes ---------------------------------------------------------------------------------------

    def _next_hops(self) -> list[Hop]:
        """The hops to probe in this period: first those that miss an answer, then the others in turn."""
        budget = max(1, int(MAX_PROBES_PER_S * self._period_s))
        urgent = [
            hop for hop, state in self._hops.items() if state.seen and state.lost and not self._is_down(hop)
        ]
        chosen = dict.fromkeys(urgent[:budget])
        for _ in range(min(budget - len(chosen), len(self._turn))):
            chosen[self._turn[0]] = None
            self._turn.rotate(-1)
        return list(chosen)

    async def _probe(self, hops: Iterable[Hop]) -> None:
        by_sender: dict[str, list[str]] = defaultdict(list)
        for sender, receiver in hops:
            by_sender[sender].append(receiver)
        await asyncio.gather(*(self._probe_from(sender, near) for sender, near in by_sender.items()))

    async def _probe_from(self, sender: str, receivers: list[str]) -> None:
        for receiver in receivers:
            state = self._hops[sender, receiver]
            if not (self._fleet.health(sender).ready and self._fleet.health(receiver).ready):
                state.reset()
                continue
            port = self._config.fabric.ports[sender][receiver]
            state.lost += 1  # before the packet is sent: the answer may come while this waits
            try:
                packet = management_packet(self._config, self._lanes, sender, Kind.READ, slot=0, request=0)
                await self._fleet.sessions[sender].packet_out(packet, port)
            except SwitchUnreachableError:
                state.reset()

    # ---- port counters --------------------------------------------------------------------------------

    async def _read_suspects(self) -> None:
        suspects = [
            hop
            for hop, state in self._hops.items()
            if state.seen and state.lost >= SUSPECT_LOST and not self._is_down(hop)
        ]
        if not suspects:
            return
        ports = self._config.fabric.ports
        sent = await self._read_ports([(a, ports[a][b]) for a, b in suspects], arrivals=False)
        # after the departures: arrivals that are counted now may include packets that were sent since
        received = await self._read_ports([(b, ports[b][a]) for a, b in suspects], arrivals=True)
        for a, b in suspects:
            departures, arrivals = sent.get((a, ports[a][b])), received.get((b, ports[b][a]))
            if departures is not None and arrivals is not None:
                self._hops[a, b].on_counters(departures, arrivals)

    async def _read_ports(
        self, places: Iterable[tuple[str, int]], *, arrivals: bool
    ) -> dict[tuple[str, int], int]:
        """Bytes by switch and port; a switch that cannot be read is left out."""
        by_switch: dict[str, list[int]] = defaultdict(list)
        for switch, port in places:
            by_switch[switch].append(port)
        found: dict[tuple[str, int], int] = {}

        async def read(switch: str, ports: list[int]) -> None:
            rx_ports, tx_ports = (ports, []) if arrivals else ([], ports)
            try:
                counts = await self._fleet.sessions[switch].read_ports(rx_ports, tx_ports)
            except SwitchUnreachableError:
                return
            found.update({(switch, p): int(n) for p, n in zip(ports, counts.sum(axis=1), strict=True)})

        await asyncio.gather(*(read(switch, ports) for switch, ports in by_switch.items()))
        return found

    # ---- the result -----------------------------------------------------------------------------------

    def _is_down(self, hop: Hop) -> bool:
        return frozenset(hop) in self._down

    def _update_down_links(self) -> None:
        """A link that never worked is not down: its switches may not answer probes. Links that have worked are stored,
        so that the next controller finds a link down that fails while no controller runs."""
        new = {hop for hop, state in self._hops.items() if state.seen} - self._worked
        if new:
            try:
                with self._registry.change():
                    self._registry.have_worked(new)
                self._worked |= new
            except StoreError as error:  # it is noted with a later probe
                log.error("links that work cannot be noted: %s", error)
        silent = {frozenset(hop) for hop, state in self._hops.items() if state.is_down}
        down = frozenset(silent | self._reported)
        if down != self._down:
            self._down = down
            self._on_change(down)
