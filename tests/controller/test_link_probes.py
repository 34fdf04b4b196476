# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""When a link counts as down: by its ends' counters, not because an answer is late; and how soon in a large fabric."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from netfold.controller.health.link_probes import MAX_IDLE, MAX_LOST, SUSPECT_LOST, LinkProbes
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.job_admission import PacketModel
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine

FABRIC = leaf_spine(2, 2, 1)
LINK = frozenset(("leaf1", "spine1"))
PERIOD_S = 0.3
MAX_PERIODS = 200


class Switches:
    """They answer all probes until every hop has been answered. From then on `periods` are counted and probes over LINK
    get no answer: `sends`, `receives` and `readable` say by period what the counters of its ends still do."""

    def __init__(
        self,
        folder: Path,
        fabric: Fabric = FABRIC,
        *,
        sends: Callable[[int], bool] = lambda _: True,
        receives: Callable[[int], bool] = lambda _: False,
        readable: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self._fabric, self._sends, self._receives, self._readable = fabric, sends, receives, readable
        self.periods, self.reads = 0, 0
        self.down: frozenset[frozenset[str]] = frozenset()
        self._bytes = Counter[tuple[str, int, bool]]()
        self.sessions = {s.name: self._session(s.name) for s in fabric.switches}
        config = FabricConfig(fabric, addresses(fabric), 2000)
        self._registry = JobRegistry(config, PacketModel(32), Store(folder / "db", "f"))
        self.probes = LinkProbes(config, 32, self, self._registry, self._on_change, PERIOD_S, self._sleep)  # type: ignore[arg-type]

    def run(self) -> None:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(self.probes.run())

    def health(self, _: str) -> SimpleNamespace:
        return SimpleNamespace(ready=True)

    def _session(self, switch: str) -> SimpleNamespace:
        async def packet_out(_: bytes, port: int) -> None:
            near = next(n for n, p in self._fabric.ports[switch].items() if p == port)
            is_silent = self.periods > 0 and {switch, near} == LINK
            ingress = self._fabric.ports[near][switch]
            self._bytes[switch, port, True] += not is_silent or self._sends(self.periods)
            self._bytes[near, ingress, False] += not is_silent or self._receives(self.periods)
            if not is_silent:
                self.probes.on_answer(near, SimpleNamespace(ingress_port=ingress))  # type: ignore[arg-type]

        async def read_ports(rx_ports: list[int], tx_ports: list[int]) -> np.ndarray:
            if not self._readable(self.periods):
                raise SwitchUnreachableError
            self.reads += 1
            rows = [(p, False) for p in rx_ports] + [(p, True) for p in tx_ports]
            return np.array([[self._bytes[switch, *row], 0] for row in rows])

        return SimpleNamespace(packet_out=packet_out, read_ports=read_ports)

    def _on_change(self, down: frozenset[frozenset[str]]) -> None:
        self.down = down

    async def _sleep(self, _: float) -> None:
        if self.down or self.periods > MAX_PERIODS:
            raise asyncio.CancelledError
        hops = 2 * sum(not any(map(self._fabric.is_host, (k.a, k.b))) for k in self._fabric.links)
        self.periods += len(self._registry.worked) == hops


def test_a_link_whose_sender_sends_and_whose_receiver_receives_nothing_is_down_at_the_fifth_probe(
    tmp_path: Path,
):
    switches = Switches(tmp_path)
    switches.run()
    assert switches.down == {LINK}
    assert switches.periods == MAX_LOST


def test_a_link_is_not_down_while_packets_arrive_and_answers_are_late(tmp_path: Path):
    switches = Switches(tmp_path, receives=lambda period: period % 2 == 0)
    switches.run()
    assert not switches.down
    assert switches.reads > 0


def test_a_link_is_not_down_because_a_switch_stands_still_for_some_periods(tmp_path: Path):
    stands_still = range(20, 20 + MAX_IDLE - 1)
    switches = Switches(
        tmp_path,
        sends=lambda period: period not in stands_still,
        receives=lambda period: period not in stands_still,
    )
    switches.run()
    assert not switches.down


def test_a_link_is_not_down_while_its_ends_cannot_be_read(tmp_path: Path):
    switches = Switches(tmp_path, readable=lambda period: period > 50)
    switches.run()
    assert switches.down == {LINK}
    assert switches.periods > 50


def test_a_port_that_drops_what_it_should_send_is_found_too(tmp_path: Path):
    switches = Switches(tmp_path, sends=lambda _: False)
    switches.run()
    assert switches.down == {LINK}
    assert switches.periods == SUSPECT_LOST + MAX_IDLE


def test_hosts_links_take_no_turn_and_a_lost_probe_is_followed_up_at_once(tmp_path: Path):
    """800 hops between switches, at most 500 probes a second: once around takes 1.6 s."""
    switches = Switches(tmp_path, leaf_spine(40, 10, 16))
    switches.run()
    assert switches.down == {LINK}
    assert switches.periods * PERIOD_S <= 1.6 + (MAX_LOST + 1) * PERIOD_S
