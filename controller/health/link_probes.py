# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Probes which links between switches work.

The controller sends READ packets from each switch to its neighbors; an answer of the neighbor to the controller proves
the link in that direction. Silence alone proves nothing: a switch on a busy machine sends and answers late. So there is
further evidence. Both ends have to answer a READ of the controller itself, the sender after it got the probe, the
receiver after that: each has then processed all earlier packets. And the port counter of the receiver must not have
grown in the meantime. The report of a switch about its own port (gNMI) counts at once.

A probe names its sender and port. If it arrives at another switch or port than the fabric's file says, both links
that the file has at the two ports count as down."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass

from netfold.controller.health.probe_order import Hop, ProbeOrder
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.switches.deadline import Deadline
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import link_name
from netfold.controller.switches.fleet import Fleet
from netfold.controller.switches.management import SlotView, management_packet
from netfold.controller.switches.miscabling import Miscabling
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.protocol.listing import listing
from netfold.protocol.wire import Kind

MAX_LOST = 5
"""Number of consecutive probes without an answer, including the one just sent, after which a link may be down."""

SUSPECT_LOST = 3
"""Number of consecutive probes without an answer after which the further evidence is read."""

MIN_STALLED = 2
"""Number of readings in which both ends forwarded packets and the receiver had received nothing from the sender, after
which the link is down."""

LINKS_S = 15.0
"""Seconds for probes of all links of a switch that has another program."""


@dataclass
class _HopState:
    """State of a hop. `lost`: probes since the last answer. `baseline`: received bytes when the hop became suspect;
    `stalled`: see MIN_STALLED."""

    lost: int = 0
    baseline: int | None = None
    stalled: int = 0

    def reset(self) -> None:
        self.lost, self.baseline, self.stalled = 0, None, 0

    def on_arrivals(self, received: int) -> None:
        if self.baseline is None or received < self.baseline:
            self.baseline = received  # the first reading, or the first after a restart
        elif received > self.baseline:
            self.reset()
        else:
            self.stalled += 1

    @property
    def is_down(self) -> bool:
        return self.lost >= MAX_LOST and self.stalled >= MIN_STALLED


class LinkProbes:
    """Probes links in `run` until it is canceled; `period_s` 0 turns probing off. `on_change(down, miscablings)` is
    called with all links that are down and all cables that lead elsewhere, after each change of these; `on_known` once,
    when each link between switches is down or has answered a probe in both directions. `check_forwards(switch)` returns
    when the switch has processed all earlier packets, and raises SwitchUnreachableError."""

    def __init__(
        self,
        config: FabricConfig,
        lanes: int,
        fleet: Fleet,
        registry: JobRegistry,
        check_forwards: Callable[[str], Awaitable[None]],
        on_change: Callable[[frozenset[frozenset[str]], tuple[Miscabling, ...]], None],
        on_known: Callable[[], None],
        period_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._config = config
        self._lanes = lanes
        self._fleet = fleet
        self._check_forwards = check_forwards
        self._on_change = on_change
        self._on_known = on_known
        self._period_s = period_s
        self._sleep = sleep
        fabric = config.fabric
        self._hops: dict[Hop, _HopState] = {
            hop: _HopState()
            for link in fabric.links
            if not fabric.is_host(link.a) and not fabric.is_host(link.b)
            for hop in ((link.a, link.b), (link.b, link.a))
        }
        self._late: dict[Hop, None] = {}
        """Hops whose last probe had no answer when this was last looked at. Only these can be down, so that no period
        takes a look at each link of a large fabric."""
        self._unknown = set(self._hops)
        self._order = ProbeOrder(self._hops, registry, period_s)
        self._hop_by = {(a, fabric.ports[a][b]): (a, b) for a, b in self._hops}
        self._switches = {s.loopback: name for name, s in config.addresses.switches.items()}
        self._checks: list[tuple[set[Hop], asyncio.Event]] = []
        self._reported: set[frozenset[str]] = set()
        self._miscabled: dict[Hop, Miscabling] = {}
        self._right: set[tuple[str, int]] = set()
        """Ports where the last probe came from the switch that the file has there."""
        self._found: tuple[frozenset[frozenset[str]], tuple[Miscabling, ...]] = (frozenset(), ())

    async def run(self) -> None:
        if not self._period_s:
            return
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            await self._probe(self._next_hops())
            await self._read_witnesses()
            self._update_down_links()
            await self._sleep(max(0.0, self._period_s - (clock() - began)))

    def reported(self, switch: str, neighbor: str, down: bool) -> None:
        """Take the report of a switch about its own port."""
        if self._config.fabric.is_host(neighbor):
            return
        (self._reported.add if down else self._reported.discard)(frozenset((switch, neighbor)))
        self._update_down_links()

    async def check_links(self, switch: str, besides: Collection[str]) -> None:
        """Wait until each link of the switch `besides` these carries a probe in both directions again. Links to
        switches that are not ready do not count. Raises SwitchUnreachableError after LINKS_S."""
        silent = {
            hop
            for hop in self._hops
            if switch in hop
            and link_name(hop) not in besides
            and all(self._fleet.health(end).ready for end in hop)
        }
        if not self._period_s or not silent:
            return
        self._order.move_first(silent)
        check = silent, asyncio.Event()
        self._checks.append(check)
        try:
            async with Deadline(LINKS_S):
                await check[1].wait()
        except TimeoutError:
            hops = listing(sorted(f"{a}->{b}" for a, b in silent))
            raise SwitchUnreachableError(
                f"switch {switch}: no probe got through {hops} within {LINKS_S:g} s"
            ) from None
        finally:
            self._checks.remove(check)

    def on_answer(self, switch: str, view: SlotView) -> None:
        """Note that a switch has received a probe. It names its sender and, as `request`, the port that it left by."""
        hop = self._hop_by.get((self._switches.get(view.sender, ""), view.request))
        if hop is None:
            return
        (sender, receiver), state, ports = hop, self._hops[hop], self._config.fabric.ports
        expected = receiver, ports[receiver][sender]
        state.reset()
        if (switch, view.ingress_port) == expected:
            self._right.add(expected)
            self._miscabled.pop(hop, None)
            for silent, has_answered in self._checks:
                silent.discard(hop)
                if not silent:
                    has_answered.set()
        else:
            self._right.discard((switch, view.ingress_port))
            self._miscabled[hop] = Miscabling(
                sender, ports[sender][receiver], switch, view.ingress_port, *expected
            )
        self._note_known({hop})
        if hop in self._miscabled or self._is_down(hop):
            self._update_down_links()

    # ---- probes ---------------------------------------------------------------------------------------

    def _next_hops(self) -> list[Hop]:
        self._late = dict.fromkeys(hop for hop in self._late if self._hops[hop].lost)
        return self._order.next_hops([hop for hop in self._late if not self._is_down(hop)])

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
            self._late[sender, receiver] = None
            try:
                packet = management_packet(self._config, self._lanes, sender, Kind.READ, slot=0, request=port)
                await self._fleet.sessions[sender].packet_out(packet, port)
            except SwitchUnreachableError:
                state.reset()

    # ---- witnesses ------------------------------------------------------------------------------------

    async def _read_witnesses(self) -> None:
        suspects = [
            hop for hop in self._late if self._hops[hop].lost >= SUSPECT_LOST and not self._is_down(hop)
        ]
        if not suspects:
            return
        senders = await self._forwarding({a for a, _ in suspects})
        sent = [(a, b) for a, b in suspects if a in senders]
        receivers = await self._forwarding({b for _, b in sent})
        ports = self._config.fabric.ports
        received = await self._read_arrivals([(b, ports[b][a]) for a, b in sent if b in receivers])
        for a, b in sent:
            if (arrivals := received.get((b, ports[b][a]))) is not None:
                self._hops[a, b].on_arrivals(arrivals)

    async def _forwarding(self, switches: Iterable[str]) -> set[str]:
        """The switches that process packets now."""
        found: set[str] = set()

        async def check(switch: str) -> None:
            with suppress(SwitchUnreachableError):
                await self._check_forwards(switch)
                found.add(switch)

        await asyncio.gather(*map(check, switches))
        return found

    async def _read_arrivals(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Read the received bytes by switch and port; a switch that cannot be read is left out."""
        by_switch: dict[str, list[int]] = defaultdict(list)
        for switch, port in places:
            by_switch[switch].append(port)
        found: dict[tuple[str, int], int] = {}

        async def read(switch: str, ports: list[int]) -> None:
            try:
                counts = await self._fleet.sessions[switch].read_ports(ports, [])
            except SwitchUnreachableError:
                return
            found.update({(switch, p): int(n) for p, n in zip(ports, counts.sum(axis=1), strict=True)})

        await asyncio.gather(*(read(switch, ports) for switch, ports in by_switch.items()))
        return found

    # ---- the result -----------------------------------------------------------------------------------

    def _is_down(self, hop: Hop) -> bool:
        return frozenset(hop) in self._found[0]

    def _update_down_links(self) -> None:
        silent = {frozenset(hop) for hop in self._late if self._hops[hop].is_down}
        taken = {(m.arrives_at, m.arrives_by) for m in self._miscabled.values()} - self._right
        displaced = {hop for at in taken if (hop := self._hop_by.get(at)) is not None}
        down = frozenset(silent | self._reported | set(map(frozenset, displaced | self._miscabled.keys())))
        found = down, tuple(self._miscabled[hop] for hop in sorted(self._miscabled))
        if found != self._found:
            self._found = found
            self._on_change(*found)
            self._note_known({hop for hop in self._unknown if self._is_down(hop)})

    def _note_known(self, hops: set[Hop]) -> None:
        if self._unknown and not self._unknown - hops:
            self._on_known()
        self._unknown -= hops
