# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tenant isolation: whatever an attacker on a host of the fabric sends beside jobs that run, no slot, sum or socket of
a job that is not the attacker's changes, and every frame of the protocol counts in one verdict at each switch that it
reaches. What is promised to which sender is docs/explanation/security.md.

The attacker is root on hosts of its own, with a job of its own, and has a process without privileges beside each worker
and the parameter server of the others' jobs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from random import Random

import pytest

from netfold.controller.switches.tables import CPU_PORT, MANAGEMENT_PORT
from netfold.protocol.wire import PORT_FIRST, PORT_LAST, Kind
from tests.dataplane import bmv2
from tests.dataplane.bench import Bench, Tally
from tests.dataplane.conftest import Devices
from tests.dataplane.device import VERDICTS
from tests.dataplane.frames import IP_AT, IPV4, LANES, UDP, Netfold, gradient
from tests.dataplane.layout import NODE, SERVER, SERVER_ADDRESS, Fabric, TreeShape
from tests.dataplane.malice import Attacker, Origin, Target
from tests.dataplane.node import MANAGED
from tests.dataplane.world import World

ICMP, ICMP_ERRORS = 1, (3, 4, 5, 11, 12)
SLOTS, EPOCH, CHUNKS = 8, 7, 20
BURST = 100  # frames of the attacker between two looks at the registers, times what a switch takes together
SHAPES = {1: "one switch", 3: "three switches"}


class Siege:
    """A world with two jobs, of a root switch and of a parameter server, and a third one that is the attacker's.

    hosts of one switch: 1 and 2 work for both jobs, 3 is the attacker's. Of three: two leaves like that below the top
    switch, whose host 3 is the attacker's as well. `workers` of each job, whose hosts then have several, and all of
    which are children of the root; 0: one at each host, and each switch adds up.
    """

    def __init__(self, benches: list[Bench], lanes: int, random: Random, workers: int = 0) -> None:
        places = ((0, 0), (0, 1), (0, 2))[: len(benches)]
        self.fabric = Fabric(places)
        self.random = random
        self.lanes = lanes
        self.benches = benches
        self.world = World(self.fabric, benches, lanes)
        hosts = self.fabric.hosts
        leaves = range(1, len(places)) if len(places) > 1 else (0,)
        working = tuple(n for n, h in enumerate(hosts) if h.switch in leaves and h.port in (1, 2))
        owned = tuple(n for n in range(len(hosts)) if n not in working)
        top = frozenset({0})
        every = top if workers else frozenset(range(len(places)))

        def members(hosts: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(hosts[number % len(hosts)] for number in range(workers or len(hosts)))

        shapes = [
            TreeShape(self.fabric, 1, members(working), every, at_server=False, slots=SLOTS, base=0),
            TreeShape(self.fabric, 2, members(working), every - top, at_server=True, slots=SLOTS, base=SLOTS),
            TreeShape(self.fabric, 3, members(owned), every, at_server=False, slots=SLOTS, base=2 * SLOTS),
        ]
        chunks = SLOTS // 2 + 1 if workers else CHUNKS
        for shape in shapes[:2]:
            self.world.start(shape, EPOCH, window=SLOTS // 2, chunks=chunks)
        for switch, bench in enumerate(benches):
            if (at := shapes[2].at(switch)) is not None:
                bench.install(at.at(EPOCH))
        self.ports = {shape.udp_port for shape in shapes[:2]}
        self._own = self._seen(shapes[2], EPOCH)
        self.epochs = 0  # that a job came to the end of
        taken = tuple(sorted(self.ports))
        self.origins = [
            Origin(h.switch, h.port, h.address, raw=n in owned, taken=() if n in owned else taken)
            for n, h in enumerate(hosts)
        ]
        self.origins.append(Origin(0, SERVER, SERVER_ADDRESS, raw=False, taken=(shapes[1].udp_port,)))
        self.arrived = 0  # frames of the protocol, at any switch
        self.together = min(bench.device.together for bench in benches)

    def _seen(self, shape: TreeShape, epoch: int) -> Target:
        hosts = [self.fabric.hosts[n] for n in shape.hosts]
        nodes = tuple(NODE + switch for switch in range(len(self.fabric.places)))
        return Target(
            shape.tree,
            shape.udp_port,
            epoch,
            shape.slots,
            (shape.root_address, *(h.address for h in hosts)),
            (*range(len(shape.hosts)), *nodes),
        )

    def attack(self, frames: int) -> None:
        """No other host sends meanwhile, so the registers of the others' jobs have to stay as they are."""
        seen = [self._seen(job.shape, job.epoch) for job in self.world.jobs]
        attacker = Attacker(seen, self._own, self.lanes, self.random)
        before, sent = self._registers(), 0
        while sent < frames:
            origin = self.random.choice(self.origins)
            attempt = attacker.frames(origin)
            while len(attempt) < self.together:
                attempt += attacker.frames(origin)
            for first in range(0, len(attempt), self.together):
                self._through(origin, attempt[first : first + self.together])
            sent += len(attempt)
        assert self._registers() == before

    def _through(self, origin: Origin, frames: Sequence[bytes]) -> None:
        """Frames of the attacker's, and all that comes of them, to the sockets that they reach."""
        assert all(len(frame) <= IP_AT + bmv2.MTU for frame in frames), "longer than any link takes"
        under_way = deque([(origin.switch, origin.port, frames)])
        for _ in range(1000):
            if not under_way:
                return
            switch, port, several = under_way.popleft()
            bench = self.benches[switch]
            several = [bench.padded(port, data) for data in several]
            options = bench.device.parses_options
            self.arrived += sum(protocols(data, parses_options=options) for data in several)
            for out, left in bench.send_all(port, several):
                assert out != CPU_PORT, "the controller alone is answered"
                if (link := self.fabric.links.get((switch, out))) is not None:
                    under_way.append((*link, [left]))
                elif (switch, out) != (origin.switch, origin.port):
                    assert not self._is_for_a_victim(left), (
                        f"{_shown(frames)} became {left.hex()} at a socket"
                    )
        raise AssertionError(f"{_shown(frames)} goes round in a circle")

    def _is_for_a_victim(self, frame: bytes) -> bool:
        """A worker's socket is connected to its root, from port to port, and a server wants its job's port too; so does
        whatever a kernel puts together from a first fragment like that."""
        return udp_ports(frame) in {(port, port) for port in self.ports}

    def traffic(self, events: int) -> None:
        """The jobs go on, with losses and repeats; the world checks each sum that a worker takes."""
        for _ in range(events):
            self.world.happen(self.random, loss=0.02, repeats=0.05)
        for job in self.world.jobs:
            if job.done:
                self.epochs += 1
                self.world.raise_epoch(job, self.random)

    def _registers(self) -> list[list[tuple[int, bytes]]]:
        """Read all slots of the others' jobs in-band."""
        found = []
        for bench in self.benches:
            for slot in range(2 * SLOTS):
                header = Netfold(Kind.READ, MANAGED, 0, slot=slot, lanes=[0] * self.lanes)
                found.append(bench.send(CPU_PORT, b"\0\0" + gradient(header, port=MANAGEMENT_PORT)))
        return found

    def counted(self) -> Counter[int]:
        """Packets by verdict, over all switches and trees."""
        total: Counter[int] = Counter()
        for bench in self.benches:
            for tree in (0, 1, 2, 3):
                total.update(bench.device.verdicts(tree))
        assert all(0 < verdict < VERDICTS for verdict in total)
        return total


def _shown(frames: Sequence[bytes]) -> str:
    return ", ".join(frame.hex() for frame in frames)


def udp_ports(frame: bytes) -> tuple[int, int] | None:
    """Returns the ports of a datagram, whole or in its first fragment, behind options or not; None if the frame shows
    none."""
    if len(frame) < 34 or int.from_bytes(frame[12:14], "big") != IPV4 or frame[IP_AT] >> 4 != 4:
        return None
    at = IP_AT + 4 * (frame[IP_AT] & 15)
    offset = int.from_bytes(frame[20:22], "big") & 0x1FFF
    if at < 34 or frame[23] != UDP or offset or len(frame) < at + 8:
        return None
    return int.from_bytes(frame[at : at + 2], "big"), int.from_bytes(frame[at + 2 : at + 4], "big")


def protocols(frame: bytes, *, parses_options: bool) -> bool:
    """Return whether a switch has to count the frame."""
    ports = udp_ports(frame)
    if not parses_options and frame[12:14] == b"\x08\x00" and len(frame) >= 34 and 0x46 <= frame[14] <= 0x4F:
        return frame[23] == UDP and not int.from_bytes(frame[20:22], "big") & 0x1FFF
    if parses_options and quotes_netfold(frame):
        return True
    return ports is not None and ports[0] == ports[1] and PORT_FIRST <= ports[0] <= PORT_LAST


def quotes_netfold(frame: bytes) -> bool:
    """An ICMP error about a datagram between ports of the protocol, or one that hides its quote."""
    if len(frame) < 34 or frame[12:14] != b"\x08\x00" or frame[IP_AT] >> 4 != 4 or frame[23] != ICMP:
        return False
    at = IP_AT + 4 * (frame[IP_AT] & 15)
    fragment = int.from_bytes(frame[20:22], "big")
    if at < 34 or fragment & 0x1FFF or len(frame) <= at or frame[at] not in ICMP_ERRORS:
        return False
    if fragment & 0x2000:
        return True
    if len(frame) < at + 32 or frame[at + 17] != UDP:
        return False
    ports = (int.from_bytes(frame[at + n : at + n + 2], "big") for n in (28, 30))
    return frame[at + 8] & 15 != 5 or all(PORT_FIRST <= port <= PORT_LAST for port in ports)


def besiege(benches: list[Bench], lanes: int, seed: int, frames: int, workers: int = 0) -> None:
    random = Random(seed)
    siege = Siege(benches, lanes, random, workers)
    for _ in range(50 + workers):  # with few frames the siege would else be over before a job is once
        siege.traffic(200)
        if siege.epochs:
            break
    for _ in range(-(-frames // (BURST * siege.together))):
        counted = siege.counted()
        siege.arrived = 0
        siege.attack(BURST * siege.together)
        reads = 2 * 2 * SLOTS * len(benches)
        assert (siege.counted() - counted).total() == siege.arrived + reads, "each counts once"
        siege.traffic(200)
    siege.world.finish()
    assert siege.epochs > 0, "the jobs got somewhere meanwhile"
    for bench in benches:
        bench.check_counters(1, 2, 3)


def fresh(devices: Devices, target: str, tally: Tally, switches: int) -> Iterator[Bench]:
    for number in range(switches):
        device = devices(target, LANES, number)
        device.clear()
        yield Bench(device, LANES, tally, target)


@pytest.mark.parametrize("switches", [1, pytest.param(3, marks=pytest.mark.slow)], ids=SHAPES.get)
def test_an_attacker_changes_nothing_of_others(switches: int, target: str, devices: Devices, tally: Tally):
    frames = {"softswitch": 3000}.get(target, 300)
    besiege(list(fresh(devices, target, tally, switches)), LANES, switches, frames)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("switches", SHAPES, ids=SHAPES.values())
def test_an_attacker_changes_nothing_of_others_in_1e5_frames(
    switches: int, seed: int, target: str, devices: Devices, tally: Tally
):
    """100,000 frames in all are sent to softswitch, and to a switch that is there."""
    frames = {"softswitch": 12_500, "remote": 25_000}.get(target, 2500)
    besiege(list(fresh(devices, target, tally, switches)), LANES, 100 + seed, frames)
