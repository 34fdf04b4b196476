# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""When a link counts as down: by witnesses, not because an answer is late or a probe was not sent; and how soon in a
large fabric."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from netfold.controller.health.link_probes import MAX_LOST, LinkProbes
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.lifecycle.packet_model import PacketModel
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
    get no answer: `forwards` says by switch and period whether it processes packets, `receives` and `readable` by
    period what the counters of LINK's ends still do."""

    def __init__(
        self,
        folder: Path,
        fabric: Fabric = FABRIC,
        *,
        forwards: Callable[[str, int], bool] = lambda _, __: True,
        receives: Callable[[int], bool] = lambda _: False,
        readable: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self._fabric, self._forwards, self._receives, self._readable = fabric, forwards, receives, readable
        self.periods, self.reads, self.known = 0, 0, 0
        self.down: frozenset[frozenset[str]] = frozenset()
        self._bytes = Counter[tuple[str, int]]()
        self.sessions = {s.name: self._session(s.name) for s in fabric.switches}
        config = FabricConfig(fabric, addresses(fabric), 2000)
        self._registry = JobRegistry(config, PacketModel(32), Store(folder / "db", "f"))
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
        async def packet_out(_: bytes, port: int) -> None:
            near = next(n for n, p in self._fabric.ports[switch].items() if p == port)
            is_silent = self.periods > 0 and {switch, near} == LINK
            ingress = self._fabric.ports[near][switch]
            self._bytes[near, ingress] += not is_silent or self._receives(self.periods)
            if not is_silent:
                self.probes.on_answer(near, SimpleNamespace(ingress_port=ingress))  # type: ignore[arg-type]

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

    def _on_change(self, down: frozenset[frozenset[str]]) -> None:
        self.down = down

    async def _sleep(self, _: float) -> None:
        if self.down or self.periods > MAX_PERIODS:
            raise asyncio.CancelledError
        hops = 2 * sum(not any(map(self._fabric.is_host, (k.a, k.b))) for k in self._fabric.links)
        self.periods += len(self._registry.links_seen_up) == hops


def test_a_link_whose_ends_forward_and_whose_receiver_receives_nothing_is_down_at_the_fifth_probe(
    tmp_path: Path,
):
    switches = Switches(tmp_path)
    switches.run()
    assert switches.down == {LINK}
    assert switches.periods == MAX_LOST
    assert switches.known == 1, "told once that all links have answered"


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
