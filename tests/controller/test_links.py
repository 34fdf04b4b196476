# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How long a link has to be silent until it counts as down, to a controller on time and to one that is late."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from netfold.controller.health.links import LATE_S, LinkProbes, oversleep
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.admission import Wire
from netfold.controller.lifecycle.book import Book
from netfold.controller.switches.desired import Setting
from netfold.topologies.addressing import addresses
from netfold.topologies.generators import leaf_spine

FABRIC = leaf_spine(2, 2, 1)
LINK = frozenset(("leaf1", "spine1"))
HEARD = 3


@dataclass(frozen=True)
class Answer:
    payload: bytes
    metadata: dict[str, int]

    def __getitem__(self, name: str) -> int:
        return self.metadata[name]


class Switches:
    """They answer all probes of the first three rounds, and then none over LINK. A round later than the last one by
    `late` seconds follows the other until the link is down: `rounds` of them without an answer."""

    def __init__(self, folder: Path, late: float) -> None:
        self._late, self._round, self.rounds = late, 1, 0
        self.down: frozenset[frozenset[str]] = frozenset()
        self.sessions = {s.name: self._session(s.name) for s in FABRIC.switches}
        setting = Setting(FABRIC, addresses(FABRIC), 2000)
        book = Book(setting, Wire(32), Store(folder / "db", "f"))
        self.probes = LinkProbes(setting, 32, self, book, self._changed, 0.3, self._sleep)  # type: ignore[arg-type]

    def health(self, _: str) -> SimpleNamespace:
        return SimpleNamespace(ready=True)

    def _session(self, switch: str) -> SimpleNamespace:
        async def packet_out(payload: bytes, port: int) -> None:
            near = next(n for n, p in FABRIC.ports[switch].items() if p == port)
            if self._round <= HEARD or {switch, near} != LINK:
                beside = {"ingress_port": FABRIC.ports[near][switch], "bitmap": 0}
                self.probes.packet_in(near, Answer(payload, beside))  # type: ignore[arg-type]

        return SimpleNamespace(packet_out=packet_out)

    def _changed(self, down: frozenset[frozenset[str]]) -> None:
        self.down, self.rounds = down, self._round - HEARD

    async def _sleep(self, _: float) -> float:
        self._round += 1
        if self.down or self._round > 1000:
            raise asyncio.CancelledError
        return self._late


def silent_rounds(folder: Path, late: float) -> int:
    switches = Switches(folder, late)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(switches.probes.run())
    assert switches.down == {LINK}
    return switches.rounds


def test_a_controller_on_time_gives_a_link_up_at_the_fifth_probe(tmp_path: Path):
    assert silent_rounds(tmp_path, 0.0) == 5


def test_a_controller_that_is_late_itself_is_slow_to_take_silence_for_a_broken_link(tmp_path: Path):
    """It may not have heard the answers; but a link that stays silent it gives up, too."""
    assert 15 <= silent_rounds(tmp_path, 0.2) <= 25


def test_a_loop_that_is_held_up_knows_it():
    async def held_up() -> float:
        asyncio.get_running_loop().call_later(0.01, time.sleep, 0.1 + LATE_S)
        return await oversleep(0.05)

    assert asyncio.run(held_up()) > LATE_S
