# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""When a link counts as down: by witnesses, not because an answer is late or a probe was not sent; and how soon in a
large fabric."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import finsy as fy
import numpy as np
import pytest

from netfold.controller.health.link_probes import MAX_LOST, LinkProbes
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.management import management_packet, slot_view
from netfold.controller.switches.miscabling import Miscabling
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.protocol.wire import Kind
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine

FABRIC = leaf_spine(2, 2, 1)
LINK = frozenset(("leaf1", "spine1"))
HALF = frozenset(frozenset((f"leaf{i}", f"spine{j}")) for i in range(1, 181) for j in range(1, 26))
"""Half of the links of 180 leaves and 50 spines."""
MANY = frozenset(frozenset((f"leaf{i}", f"spine{j}")) for i in range(1, 21) for j in range(1, 26))
"""500 of them."""
PERIOD_S = 0.3
MAX_PERIODS = 200


class Switches:
    """They answer all probes until every hop has been answered. From then on, or from the start if it `never_worked`,
    `periods` are counted and probes over the `dead` link get no answer: `forwards` says by switch and period whether it
    processes packets, `receives` and `readable` by period what the counters of its ends still do. `jobs_use`: a job
    uses these links. `cables`: where a cable leads that is not as in the fabric, by sender and neighbor; with these,
    `down` is read when all hops have been probed."""

    def __init__(
        self,
        folder: Path,
        fabric: Fabric = FABRIC,
        *,
        forwards: Callable[[str, int], bool] = lambda _, __: True,
        receives: Callable[[int], bool] = lambda _: False,
        readable: Callable[[int], bool] = lambda _: True,
        jobs_use: frozenset[frozenset[str]] = frozenset(),
        cables: Mapping[tuple[str, str], tuple[str, str]] = MappingProxyType({}),
        never_worked: bool = False,
        dead: frozenset[str] = LINK,
    ) -> None:
        self._fabric, self._forwards, self._receives, self._readable = fabric, forwards, receives, readable
        self.periods, self.reads, self.known = int(never_worked), 0, 0
        self._answered = set[tuple[str, str]]()
        self.down: frozenset[frozenset[str]] = frozenset()
        self.miscablings: list[str] = []
        self._cables, self._dead = cables, dead
        self._hops = 2 * sum(not any(map(fabric.is_host, (k.a, k.b))) for k in fabric.links)
        self._bytes = Counter[tuple[str, int]]()
        self.sessions = {s.name: self._session(s.name) for s in fabric.switches}
        config = FabricConfig(fabric, addresses(fabric), 2000)
        self._registry = JobRegistry(config, PacketModel(32), Store(folder / "db", "f"))
        job = SimpleNamespace(name="a", placements=(SimpleNamespace(links=jobs_use),))
        self._registry.all = lambda: [job]  # type: ignore[assignment, list-item, return-value]
        self.probes = LinkProbes(
            *(config, 32, self, self._registry),  # type: ignore[arg-type]
            *(self._check_forwards, self._on_change, self._on_known, PERIOD_S, self._sleep),
        )

    def run(self) -> None:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(self.probes.run())

    def health(self, _: str) -> SimpleNamespace:
        return SimpleNamespace(ready=True)

    def _session(self, switch: str) -> SimpleNamespace:
        neighbors = {port: near for near, port in self._fabric.ports[switch].items()}

        async def packet_out(packet: bytes, port: int) -> None:
            near, far_port_to = self._cables.get((switch, neighbors[port]), (neighbors[port], switch))
            is_silent = self.periods > 0 and {switch, near} == self._dead
            ingress = self._fabric.ports[near][far_port_to]
            self._bytes[near, ingress] += not is_silent or self._receives(self.periods)
            if not is_silent:
                view = slot_view(fy.P4PacketIn(packet, metadata={"ingress_port": ingress, "bitmap": 0}))
                assert view is not None
                self._answered.add((switch, near))
                self.probes.on_answer(near, view)

        async def read_ports(rx_ports: list[int], tx_ports: list[int]) -> np.ndarray:
            if not self._readable(self.periods):
                raise SwitchUnreachableError
            self.reads += 1
            assert not tx_ports
            return np.array([[self._bytes[switch, port], 0] for port in rx_ports])

        return SimpleNamespace(packet_out=packet_out, read_ports=read_ports)

    async def _check_forwards(self, switch: str) -> None:
        if self.periods and not self._forwards(switch, self.periods):
            raise SwitchUnreachableError

    def _on_known(self) -> None:
        self.known += 1

    def _on_change(self, down: frozenset[frozenset[str]], miscablings: tuple[Miscabling, ...]) -> None:
        self.down = down
        self.miscablings = [str(m) for m in miscablings]

    async def _sleep(self, _: float) -> None:
        if (self.known if self._cables else self.down) or self.periods > MAX_PERIODS:
            raise asyncio.CancelledError
        self.periods += self.periods > 0 or len(self._answered) == self._hops


def test_a_link_whose_ends_forward_and_whose_receiver_receives_nothing_is_down_at_the_fifth_probe(
    tmp_path: Path,
):
    switches = Switches(tmp_path)
    switches.run()
    assert switches.down == {LINK}
    assert switches.periods == MAX_LOST
    assert switches.known == 1, "all links have answered"


def test_a_link_that_never_worked_is_down(tmp_path: Path):
    switches = Switches(tmp_path, never_worked=True)
    switches.run()
    assert switches.down == {LINK}
    assert switches.known == 1, "it is known that one is down"


def test_a_link_is_not_down_while_packets_arrive_and_answers_are_late(tmp_path: Path):
    switches = Switches(tmp_path, receives=lambda period: period % 2 == 0)
    switches.run()
    assert not switches.down
    assert switches.reads > 0


@pytest.mark.parametrize("slow", ["leaf1", "spine1"])
def test_a_link_is_not_down_while_one_of_its_ends_stands_still(tmp_path: Path, slow: str):
    """It has not sent the probes that it got, or not processed those that arrived: what was not sent is no witness."""
    switches = Switches(tmp_path, forwards=lambda switch, period: switch != slow or period > 50)
    switches.run()
    assert switches.down == {LINK}
    assert switches.periods > 50


def test_a_link_is_not_down_while_its_ends_cannot_be_read(tmp_path: Path):
    switches = Switches(tmp_path, readable=lambda period: period > 50)
    switches.run()
    assert switches.down == {LINK}
    assert switches.periods > 50


def test_hosts_links_take_no_turn_and_a_lost_probe_is_followed_up_at_once(tmp_path: Path):
    """800 hops between switches, at most 500 probes a second: once around takes 1.6 s."""
    switches = Switches(tmp_path, leaf_spine(40, 10, 16))
    switches.run()
    assert switches.down == {LINK}
    assert switches.periods * PERIOD_S <= 1.6 + (MAX_LOST + 1) * PERIOD_S


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs_use", "within_s"),
    [
        pytest.param(frozenset((LINK,)), 3, id="it alone"),
        pytest.param(MANY, 3, id="it and others"),
        pytest.param(frozenset(), 60, id="none"),
        pytest.param(HALF, 60, id="half"),
    ],
)
def test_a_dead_link_is_found_among_9000_links(tmp_path: Path, jobs_use, within_s: float):
    """Half of the links, in both directions, are more than a turn of 1.2 s has room for."""
    switches = Switches(tmp_path, leaf_spine(180, 50, 1), jobs_use=jobs_use)
    switches.run()
    assert switches.down == {LINK}
    assert switches.periods * PERIOD_S <= within_s


def test_a_link_that_died_before_a_start_is_found_once_its_switches_are_ready(tmp_path: Path):
    """Among 9,000 links, whose switches connect one by one. None has answered yet."""
    fabric, dead = leaf_spine(180, 50, 1), frozenset(("leaf100", "spine30"))
    switches = Switches(tmp_path, fabric, jobs_use=frozenset((dead,)), never_worked=True, dead=dead)
    others = [s.name for s in fabric.switches if s.name not in dead]
    ready_at = {name: place / 8 for place, name in enumerate((*others, *dead))}
    switches.health = lambda name: SimpleNamespace(ready=switches.periods > ready_at[name])  # type: ignore[method-assign]
    switches.run()
    assert switches.down == {dead}
    assert (switches.periods - max(ready_at.values())) * PERIOD_S <= 3


def test_the_link_of_a_port_that_another_one_s_cable_leads_to_is_down(tmp_path: Path):
    """One fiber is in a wrong port. What arrives there is no evidence of the link that the file has at the port."""
    switches = Switches(tmp_path, cables={("leaf1", "spine1"): ("spine2", "leaf1")})
    port = FABRIC.ports["leaf1"]["spine1"]
    config = FabricConfig(FABRIC, addresses(FABRIC), 2000)
    probe = management_packet(config, 32, "leaf1", Kind.READ, slot=0, request=port)
    asyncio.run(switches.sessions["leaf1"].packet_out(probe, port))
    assert switches.down == {frozenset(("leaf1", "spine1")), frozenset(("leaf1", "spine2"))}
    assert len(switches.miscablings) == 1


def test_two_cables_that_are_swapped_are_named_by_both_ends_and_are_down(tmp_path: Path):
    swapped = {("leaf1", "spine1"): ("spine2", "leaf1"), ("leaf1", "spine2"): ("spine1", "leaf1")}
    back = {("spine1", "leaf1"): ("leaf1", "spine2"), ("spine2", "leaf1"): ("leaf1", "spine1")}
    switches = Switches(tmp_path, cables=swapped | back)
    switches.run()
    assert switches.down == {frozenset(("leaf1", "spine1")), frozenset(("leaf1", "spine2"))}
    ports = FABRIC.ports
    at_spine1, at_spine2 = ports["spine1"]["leaf1"], ports["spine2"]["leaf1"]
    first = f"leaf1 port {ports['leaf1']['spine1']} leads to spine2 port {at_spine2}"
    assert f"{first}, the file says spine1 port {at_spine1}" in switches.miscablings
    assert len(switches.miscablings) == 4, "both directions of both cables"
