# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults that a run injects into its own network."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from netfold.testbed.fault_injection import FaultInjection
from netfold.topologies.spec import load_fabric


class Net:
    """The network tofino-pair, which writes down what is done to it."""

    def __init__(self) -> None:
        self.fabric = load_fabric("tofino-pair")
        self.done: list[object] = []
        self.switches = {s.name: self.switch(s.name) for s in self.fabric.switches}
        self.bytes = 0

    def switch(self, name: str) -> Any:
        return SimpleNamespace(
            name=name,
            kill=lambda: self.done.append(("kill", name)),
            start=lambda: self.done.append(("start", name)),
        )

    def link_bytes(self) -> dict[tuple[str, str], int]:
        return {("h1", "leaf1"): self.bytes}

    def set_faults(self, sender: str, receiver: str, faults: Any) -> None:
        self.done.append((sender, receiver, faults.loss))


@pytest.fixture
def net() -> Any:
    return Net()


def test_every_link_loses_in_both_directions(net: Any) -> None:
    FaultInjection(loss=0.25).start_loss(net)
    assert len(net.done) == 2 * len(net.fabric.links)
    assert {loss for _, _, loss in net.done} == {0.25}


def test_nothing_is_lost_and_no_switch_killed_unless_it_is_asked_for(net: Any) -> None:
    none = FaultInjection()
    none.start_loss(net)
    look = none.restarting(net, lambda _: None)
    net.bytes = 1 << 30
    look()
    assert net.done == []
    assert none.lost(net) is None


def test_a_switch_is_killed_and_started_once_when_the_sums_flow(net: Any) -> None:
    told: list[str] = []
    net.bytes = 5_000
    look = FaultInjection(restart="leaf2").restarting(net, told.append)
    look()
    assert net.done == []
    for _ in range(2):
        net.bytes += 1 << 20
        look()
    assert net.done == [("kill", "leaf2"), ("start", "leaf2")]
    assert told == ["killing and restarting leaf2"]
