# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A network of switches under test with jobs on it: what `test_stateful` drives at random.

Every switch is a `Bench`, so each frame that leaves any of them is compared with the oracle's. On top of that stand the
workers, which know what the sum of a chunk should be: the invariants are theirs to check.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from netfold.controller.switches.tables import CPU_PORT, MANAGEMENT_PORT
from netfold.protocol.wire import Flag, Kind, Packet, Verdict, WireError, make_tag
from tests.dataplane.bench import Bench
from tests.dataplane.frames import (
    CE,
    LANES_AT,
    NETFOLD_AT,
    TCP,
    UDP,
    Ip,
    Netfold,
    checksum,
    ethernet,
    gradient,
    udp,
)
from tests.dataplane.job import Job, Lanes, Server, Worker
from tests.dataplane.layout import NODE, SERVER, UPLINK, Fabric, TreeShape
from tests.dataplane.node import MANAGED
from tests.quorum_oracle import QuorumPool
from tests.slot_oracle import SlotPool, Sum

MAX_IN_FLIGHT = 200
MAX_SLOTS = 16  # of a tree
Forgery = tuple[int, int, bytes]  # switch, port, frame


class World:
    def __init__(self, fabric: Fabric, benches: Sequence[Bench], lanes: int) -> None:
        self.fabric = fabric
        self.lanes = lanes
        self.jobs: list[Job] = []
        self.flying: list[tuple[int, int, bytes]] = []  # (switch, port, frame) about to come in
        self._benches = benches
        self._later: list[Callable[[], None]] = []  # what the controller has still to do, in order
        self._retired: set[int] = set()
        for switch, bench in enumerate(benches):
            bench.install(*fabric.settings(switch))

    # What the controller does.

    def start(self, shape: TreeShape, epoch: int, window: int, chunks: int) -> None:
        shape = replace(shape, targets=shape.targets and self._benches[0].oracle.has_targets)
        workers = [Worker(host, epoch) for host in shape.hosts]
        server = Server(self._pool(shape), epoch) if shape.at_server else None
        job = Job(shape, epoch, window, chunks, self.lanes, workers, server)
        self.jobs.append(job)
        for switch in range(len(self._benches)):
            self._install(job, switch, epoch)

    def _pool(self, shape: TreeShape) -> SlotPool | QuorumPool:
        children, senders = len(shape.server_children), len(shape.server_senders)
        if shape.quorum is None:
            return SlotPool(shape.slots, self.lanes, children, root=True, targets=shape.targets)
        return QuorumPool(shape.slots, self.lanes, children, True, shape.quorum, senders - children)

    def _install(self, job: Job, switch: int, epoch: int) -> None:
        if (at := job.shape.at(switch)) is not None:
            self._benches[switch].install(at.at(epoch))

    def raise_epoch(self, job: Job, random: Random) -> None:
        """Aborts what is under way: nodes and workers move to the next epoch one by one, with traffic in between."""
        job.epoch += 1
        epoch = job.epoch
        steps: list[Callable[[], None]] = [
            *(lambda s=s: self._install(job, s, epoch) for s in range(len(self._benches))),
            *(lambda w=w: self._restart(w, epoch) for w in job.workers),
        ]
        if job.server is not None:
            steps.append(lambda: self._restart_server(job, epoch))
        random.shuffle(steps)
        self._later += steps

    def _restart(self, worker: Worker, epoch: int) -> None:
        worker.epoch, worker.received, worker.slot_reused = epoch, {}, False

    def _restart_server(self, job: Job, epoch: int) -> None:
        job.server = Server(self._pool(job.shape), epoch)

    def replace(self, job: Job, shape: TreeShape, window: int, chunks: int, *, reset: bool) -> None:
        """The job ends as it stands, and another tree gets its slots: in a newer epoch, or, after the controller
        has reset them, in the first one."""
        self.settle()
        self.jobs.remove(job)
        self._retired.add(job.shape.tree)
        for switch, bench in enumerate(self._benches):
            if job.shape.at(switch) is not None:
                bench.remove(job.shape.tree)
        if reset:
            for bench in self._benches:
                for slot in range(shape.base, shape.base + MAX_SLOTS):  # also those the next tree may use
                    self._manage(bench, Kind.RESET, slot)
        self.start(shape, 1 if reset else job.epoch + 1, window, chunks)

    def settle(self) -> None:
        """The controller does what it still has to do."""
        while self._later:
            self._later.pop(0)()

    # What the network does.

    def happen(self, random: Random, loss: float, repeats: float) -> None:
        """One event: mostly a frame that arrives, in any order."""
        dice = random.random()
        if self._later and dice < 0.05:
            self._later.pop(0)()
        elif self.jobs and (not self.flying or dice < 0.35) and len(self.flying) < MAX_IN_FLIGHT:
            self._send_something(random)
        elif self.flying:
            place = random.randrange(len(self.flying))
            switch, port, frame = self.flying[place]
            if random.random() >= repeats or len(self.flying) >= MAX_IN_FLIGHT:
                self.flying[place] = self.flying[-1]
                self.flying.pop()
            if random.random() < 0.05:
                frame = congested(frame)
            if random.random() >= loss:
                self._arrive(switch, port, frame)

    def _send_something(self, random: Random) -> None:
        job = random.choice(self.jobs)
        child = random.randrange(len(job.workers))
        if chunks := job.in_window(job.workers[child]):
            self._send(job, child, random.choice(chunks), seal=random.random() < 0.3)

    def _send(self, job: Job, child: int, chunk: int, seal: bool) -> None:
        """`seal`: the worker's deadline is over, if the job has a quorum."""
        worker = job.workers[child]
        exponent, lanes = job.contribution(child, worker.epoch, chunk)
        target, is_short = job.target(worker.epoch, chunk), job.is_short(child, worker.epoch, chunk)
        round_, slot = divmod(chunk, job.shape.slots)
        header = Netfold(
            Kind.GRADIENT,
            job.shape.tree,
            worker.epoch,
            round_,
            slot,
            child,
            [] if is_short else lanes.tolist(),
            flags=int(Flag.DATA if target and not is_short else Flag(0)),
            exponent=exponent,
            reserved=child + 1 & 0xFF,  # ignored, and not sent on by a node that makes a packet of it
            lane_count=target.field if target else None,
        )
        if job.shape.quorum is not None:
            flags = Flag.QUORUM | (Flag.SEAL if seal else Flag(0))
            header = replace(header, reserved=1, flags=int(flags))
        host = self.fabric.hosts[worker.host]
        packet = Ip(
            src=host.address,
            dst=job.shape.root_address,
            ttl=33 + chunk,
            dscp=child % 64,
            identification=chunk,
        )
        padding = bytes(2 if is_short and chunk % 2 else 0)  # as a card adds it
        frame = gradient(header, packet, port=job.shape.udp_port, trailer=padding, udp_sum=chunk)
        self.flying.append((host.switch, host.port, frame))

    def _arrive(self, switch: int, port: int, frame: bytes) -> None:
        for out, left in self._benches[switch].send(port, frame):
            self._carry(switch, out, left)

    def _carry(self, switch: int, port: int, frame: bytes) -> None:
        """A frame that left a switch, to the other end of the link."""
        if port == SERVER and switch == 0:
            self._at_server(frame)
        elif (link := self.fabric.links.get((switch, port))) is not None:
            self.flying.append((*link, frame))
        elif (host := self.fabric.host_at(switch, port)) is not None:
            self._at_host(host, frame)

    # What the hosts do.

    def _at_host(self, host: int, frame: bytes) -> None:
        packet = _netfold(frame)
        if packet is None or packet.kind is not Kind.RESULT:
            return
        assert frame[30:34] == bytes(map(int, self.fabric.hosts[host].address.split(".")))
        for job in self.jobs:
            for rank, worker in enumerate(job.workers):
                if (worker.host, job.shape.tree, worker.epoch) == (host, packet.tree, packet.epoch):
                    self._take(job, rank, worker, packet)

    def _take(self, job: Job, rank: int, worker: Worker, packet: Packet) -> None:
        chunk = packet.round * job.shape.slots + packet.slot
        if chunk not in job.in_window(worker):
            return
        if Flag.SLOT_REUSED in packet.flags:
            worker.slot_reused = True
            return
        assert packet.target == job.target(packet.epoch, chunk)
        lanes: Lanes = packet.lane or (0,) * self.lanes
        if packet.target and not packet.target.wants(rank):
            lanes = None
        elif not packet.lane and Flag.DATA in packet.flags:
            return  # S10
        result = (packet.flags & Flag.OVERFLOW, packet.exponent, lanes, packet.count)
        assert job.is_sum(packet.epoch, chunk, result)  # I1, I2, I6
        assert job.results.setdefault((packet.epoch, chunk, lanes is None), result) == result  # I3
        worker.received[chunk] = result

    def _at_server(self, frame: bytes) -> None:
        packet = _netfold(frame)
        job = next((j for j in self.jobs if packet is not None and j.shape.tree == packet.tree), None)
        if packet is None or job is None or job.server is None or packet.epoch != job.server.epoch:
            return
        if packet.kind is not Kind.GRADIENT or packet.child not in job.shape.server_senders:
            return
        bit = job.shape.server_senders.index(packet.child)
        marked = Flag.CONGESTION if frame[15] & 3 == CE else Flag(0)
        tag = make_tag(packet.epoch, packet.round)
        pool, count, flags = job.server.pool, 0, packet.flags | marked
        if isinstance(pool, QuorumPool):
            outcome, count = pool.gradient(
                tag, packet.slot, bit, flags, packet.exponent, packet.lane, packet.count
            )
        else:
            outcome = pool.gradient(tag, packet.slot, bit, flags, packet.exponent, packet.lane or None)
        sums = outcome.packet
        if outcome.verdict is Verdict.SLOT_REUSED:
            sums = Sum(Flag.QUORUM | Flag.SLOT_REUSED, 0, np.zeros(self.lanes, np.int32))
        if sums is not None:
            answer = Netfold(
                Kind.RESULT,
                packet.tree,
                packet.epoch,
                packet.round,
                packet.slot,
                packet.child,
                [] if packet.target and Flag.DATA not in sums.flags else sums.lanes.tolist(),
                int(sums.flags),
                sums.exponent,
                reserved=count,
                lane_count=packet.target.field if packet.target else None,
            )
            to = ".".join(map(str, frame[26:30]))
            back = gradient(answer, Ip(src=job.shape.root_address, dst=to), port=job.shape.udp_port)
            self.flying.append((0, SERVER, back))

    # What no node should do.

    def forge(self, random: Random) -> None:
        """A frame with something wrong, or something else than netfold, at any port of any switch. None of them is
        admitted, so nothing that a tree relies on may change."""
        made = random.choice([self._impostor, self._insider, self._malformed, self._other])(random)
        if made is not None:
            switch, port, frame = made
            for out, left in self._benches[switch].send(port, frame):
                if _netfold(left) is None:
                    self._carry(switch, out, left)

    def _anywhere(self, random: Random) -> tuple[int, int]:
        return random.randrange(len(self._benches)), random.choice([1, 2, 3, UPLINK, SERVER, 6])

    def _impostor(self, random: Random) -> Forgery | None:
        """Wrong values of every kind, unless they happen to be those of an admitted sender."""
        if not self.jobs:
            return None
        job = random.choice(self.jobs)
        switch, port = self._anywhere(random)
        header = Netfold(
            kind=random.choice([*Kind]),
            tree=random.choice([job.shape.tree, job.shape.tree + 1, 0, MANAGED, *self._retired]),
            epoch=random.choice([job.epoch, job.epoch - 1, job.epoch + 1, 0, 4095]),
            round=random.choice([0, 1, 5, 0xFFFFF]),
            slot=random.choice([0, 1, job.shape.slots - 1, job.shape.slots, 4095, 0xFFFF]),
            child=random.choice([0, 1, 2, len(job.workers) - 1, NODE, NODE + 1, 0xFFFF]),
            lanes=[random.randrange(-(2**31), 2**31)] * random.choice([0, self.lanes, self.lanes]),
            flags=random.randrange(256),
            exponent=random.randrange(256),
            reserved=random.randrange(256),
            lane_count=random.choice([self.lanes, self.lanes, 0x8000 + random.randrange(0x8000)]),
        )
        udp_port = random.choice([job.shape.udp_port, job.shape.udp_port, 0xF000, 0xF0FF])
        if self._admitted(switch, port, udp_port, header):
            return None
        packet = Ip(ecn=random.randrange(4), dscp=random.randrange(64), ttl=random.choice([0, 1, 2, 64]))
        return switch, port, gradient(header, packet, port=udp_port)

    def _admitted(self, switch: int, port: int, udp_port: int, header: Netfold) -> bool:
        """Whether the right sender could send this: then it is no forgery but a sender that lies about its own job."""
        for job in self.jobs:
            at = job.shape.at(switch)
            if at is None or (at.tree, at.udp_port) != (header.tree, udp_port):
                continue
            senders = {(c.port, c.number) for c in at.children} | {(p.port, p.number) for p in at.passes}
            if header.kind == Kind.GRADIENT and (port, header.child) in senders:
                return True
            if header.kind == Kind.RESULT and port == at.results_from:
                return True
        return False

    def _insider(self, random: Random) -> Forgery | None:
        """A packet of the right sender: in a slot that is not the tree's, in an epoch that never was, or at the end of
        its time to live, which only where it would be sent on is one too late."""
        gradients = self._gradients()
        if not gradients:
            return None
        switch, port, frame = random.choice(gradients)
        out = bytearray(frame)
        match random.randrange(3):
            case 0:
                struct.pack_into(">H", out, NETFOLD_AT + 8, random.choice([16, 32, 4095, 0x8000, 0xFFFF]))
            case 1:
                struct.pack_into(">H", out, NETFOLD_AT + 4, random.choice([0, 0xFFF0]))
            case _:
                out[22], out[24:26] = random.choice([0, 1]), bytes(2)
                struct.pack_into(">H", out, 24, checksum(bytes(out[14:34])))
        return switch, port, bytes(out)

    def _malformed(self, random: Random) -> Forgery | None:
        """A packet on its way, cut or with one bit of its form changed."""
        gradients = self._gradients()
        if not gradients:
            return None
        switch, port, whole = random.choice(gradients)
        frame = bytearray(whole)
        if random.random() < 0.5:  # else where it would be taken, if it were whole
            switch, port = self._anywhere(random)
        if random.random() < 0.5:
            return switch, port, bytes(frame[: random.randrange(14, len(frame))])
        # header length, IP length, fragment, checksum, ports, UDP length, version, lanes
        place = random.choice([14, 16, 17, 20, 21, 24, 25, 34, 35, 36, 37, 38, 39, 42, 56, 57])
        frame[place] ^= 1 << random.randrange(8)
        well_formed = place == 42 and frame[42] >> 4 == 1 and frame[42] & 15 <= Kind.RESET
        well_formed |= place in (56, 57) and whole[56] >= 0x80 and frame[56] >= 0x80  # another target
        return None if well_formed else (switch, port, bytes(frame))

    def _gradients(self) -> list[Forgery]:
        return [flight for flight in self.flying if len(flight[2]) >= LANES_AT and flight[2][42] == 0x10]

    def _other(self, random: Random) -> Forgery:
        host = random.choice(self.fabric.hosts)
        packet = Ip(
            dst=random.choice([host.address, "192.0.2.1"]),
            ttl=random.choice([0, 1, 2, 64]),
            flags_and_offset=random.choice([0, 0x2000, 0x0010]),
            options=random.choice([b"", b"", bytes(4)]),
            ecn=random.randrange(4),
            protocol=random.choice([UDP, UDP, TCP]),
            version=random.choice([4, 4, 4, 5]),
        )
        if packet.protocol == TCP:
            return (*self._anywhere(random), ethernet(packet.pack(random.randbytes(random.randrange(6)))))
        ports = random.choice([(5, 6), (53, 0xF001), (0xF001, 53), (0xF001, 0xF002), (0xF001, 0xF001)])
        body = udp(random.randbytes(random.randrange(60)), *ports, sum_=random.randrange(1 << 16))
        return (*self._anywhere(random), ethernet(packet.pack(body)))

    def look(self, random: Random) -> None:
        """The controller reads a slot of any switch."""
        self._manage(random.choice(self._benches), Kind.READ, random.randrange(64))

    def _manage(self, bench: Bench, kind: Kind, slot: int) -> None:
        header = Netfold(kind, MANAGED, 0, slot=slot, lanes=[0] * self.lanes)
        bench.send(CPU_PORT, b"\0\0" + gradient(header, port=MANAGEMENT_PORT))

    # What has to hold.

    def check_counters(self) -> None:
        for bench in self._benches:
            bench.check_counters(*self._retired)

    def finish(self) -> None:
        """Lose all frames in flight. Then every worker repeats what it lacks until all have all (progress)."""
        self.settle()
        self.flying.clear()
        levels = 2 + self.fabric.depth
        for _ in range(levels * max((job.chunks for job in self.jobs), default=0) + 1):
            if all(job.done for job in self.jobs):
                return
            for job in self.jobs:
                for child, worker in enumerate(job.workers):
                    for chunk in job.in_window(worker):
                        self._send(job, child, chunk, seal=True)
            while self.flying:
                self._arrive(*self.flying.pop(0))
        unfinished = [job.shape for job in self.jobs if not job.done]
        assert not unfinished, f"cannot finish: {unfinished}"


def congested(frame: bytes) -> bytes:
    """Marked by a queue on the way, if it is a whole IPv4 packet that may be."""
    if len(frame) < 34 or frame[12:15] != b"\x08\x00\x45" or not frame[15] & 3:
        return frame
    header = frame[14:15] + bytes([frame[15] | CE]) + frame[16:24] + b"\0\0" + frame[26:34]
    return frame[:14] + header[:10] + struct.pack(">H", checksum(header)) + header[12:] + frame[34:]


def _netfold(frame: bytes) -> Packet | None:
    """The netfold packet in a frame that a switch has let through."""
    if (
        frame[12:15] != b"\x08\x00\x45"
        or frame[23] != 17
        or frame[36:37] != b"\xf0"
        or frame[34:36] != frame[36:38]
        or frame[20] & 0x3F
        or frame[21]
    ):
        return None
    length: int = struct.unpack_from(">H", frame, 38)[0]
    try:
        return Packet.parse(frame[42 : 34 + length])
    except WireError:
        return None
