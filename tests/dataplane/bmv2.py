# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The same program on simple_switch_grpc: veth links, raw sockets, P4Runtime.

The switch answers when it likes, so every frame is followed by a marker that comes in by the same port and leaves
by all of them. BMv2 keeps the order of packets between two ports: what came out before the marker is all that the
frame caused.
"""

from __future__ import annotations

import itertools
import os
import queue
import re
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import finsy as fy
import grpc
import numpy as np
from finsy.proto import p4r
from finsy.proto.p4.v1 import p4runtime_pb2_grpc
from softswitch.testing import simple_switch
from softswitch.testing.simple_switch import free_port

from netfold.controller.switches.entries import Codec, Entity, MulticastGroup
from netfold.controller.switches.tables import CPU_PORT, downlink, multicast_results, result_group
from netfold.p4src.manifest import Form
from netfold.p4src.tools.p4build import BMV2_LANES, CHILDREN, Profile
from netfold.protocol.wire import Kind
from tests.dataplane.device import VERDICTS, Device, Frames, compiled
from tests.dataplane.frames import JOB_PORT, Netfold, gradient

PORTS = (*range(1, 9), CPU_PORT)
MARKER_TREE, MARKER_EPOCH = 1023, 4095
TIMEOUT_S = 60.0  # a push of a large program on a busy machine
MTU = 9000
_ETH_P_ALL = 3
_numbers = itertools.count()


def missing() -> str | None:
    """Why it cannot run here; None if it can."""
    if shutil.which(simple_switch.PROGRAM) is None:
        return f"{simple_switch.PROGRAM} is not on PATH"
    return "veth links need root" if os.geteuid() != 0 else None


def own_form(profile: Profile) -> Profile:
    """The program of these lanes and children that BMv2 gets."""
    has_own = profile.lanes in BMV2_LANES and profile.children == CHILDREN
    return replace(profile, form=Form.BMV2) if has_own else profile


MARKED_BYTES = 44
"""Headers to the flags: a switch with thresholds marks a packet that waits, as on a busy machine."""


@contextmanager
def bmv2(profile: Profile) -> Iterator[Bmv2Device]:
    """A running switch with the program of a profile; the process and its links go whatever happens."""
    with ExitStack() as stack:
        sweep()
        name = f"nf{np.base_repr(os.getpid(), 36).lower()}x{next(_numbers)}"
        links = {port: stack.enter_context(link(f"{name}p{port}")) for port in PORTS}
        address = f"127.0.0.1:{free_port()}"
        arguments = simple_switch.command(address, {port: f"{name}p{port}" for port in PORTS}, "-L", "error")
        log = Path(stack.enter_context(TemporaryDirectory())) / "bmv2.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *arguments], stdout=output, stderr=output
            )
        stack.callback(_end, process)
        channel = stack.enter_context(grpc.insecure_channel(address))
        simple_switch.wait_until_ready(process, channel, log)
        device = Bmv2Device(profile, links, channel)
        stack.callback(device.close)
        yield device


def sweep() -> None:
    """Takes away the links of test runs that were killed before they could. Their switches died with them."""
    shown = subprocess.run(["ip", "-o", "link"], check=True, capture_output=True, text=True).stdout
    for name, pid in re.findall(r" (nf([0-9a-z]+)x\d+p\d+)@", shown):
        if not Path(f"/proc/{int(pid, 36)}").exists():
            subprocess.run(["ip", "link", "del", name], check=False, capture_output=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(TIMEOUT_S)


@contextmanager
def link(name: str) -> Iterator[socket.socket]:
    """A veth pair; the switch takes `name`, the test the other end, as a raw socket."""
    peer = name + "t"
    _ip("link", "add", name, "type", "veth", "peer", "name", peer)
    try:
        for end in (name, peer):
            subprocess.run(["sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1"], check=True)
            _ip("link", "set", end, "mtu", str(MTU), "up")
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            raw.bind((peer, _ETH_P_ALL))
            yield raw
    finally:
        _ip("link", "del", name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Bmv2Device(Device):
    least_bytes = 0
    trees = MARKER_TREE + 1
    parses_options = True

    def __init__(self, profile: Profile, links: dict[int, socket.socket], channel: grpc.Channel) -> None:
        self._links = links
        self.children = profile.children
        self.wraps = profile.form is Form.BMV2
        self._program, self._p4info = compiled(profile)
        self._schema = fy.P4Schema(self._p4info, self._program)
        self._codec = Codec(self._schema)
        self._marks = itertools.count()
        self._groups: dict[int, MulticastGroup] = {}
        self._marker = Netfold(Kind.RESULT, MARKER_TREE, MARKER_EPOCH, lanes=[0] * profile.lanes)
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self._stream = self._stub.StreamChannel(iter(self._requests.get, None))
        election = p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(low=1))
        self._requests.put(p4r.StreamMessageRequest(arbitration=election))
        next(self._stream)
        self.clear()

    def close(self) -> None:
        self._requests.put(None)
        self._stream.cancel()

    def clear(self) -> None:
        """A new pipeline: nothing is left of the old one's tables, registers and counters. Multicast groups go
        before, because BMv2 keeps those of the old pipeline and adds the new ones to them."""
        if self._groups:
            self.delete(list(self._groups.values()))
        config = p4r.ForwardingPipelineConfig(
            p4info=self._schema.p4info, p4_device_config=self._program.read_bytes()
        )
        action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        self._stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=1, election_id=p4r.Uint128(low=1), action=action, config=config
            ),
            timeout=TIMEOUT_S,
        )
        self.insert([result_group(MARKER_TREE, PORTS), downlink(MARKER_TREE, MARKER_TREE)])
        self.insert(multicast_results(port, JOB_PORT, MARKER_TREE, MARKER_EPOCH) for port in PORTS)

    def insert(self, entities: Iterable[Entity]) -> None:
        new = list(entities)
        self._groups |= {entity.group: entity for entity in new if isinstance(entity, MulticastGroup)}
        self._write(p4r.Update.INSERT, new)

    def delete(self, entities: Iterable[Entity]) -> None:
        old = list(entities)
        for entity in old:
            if isinstance(entity, MulticastGroup):
                del self._groups[entity.group]
        self._write(p4r.Update.DELETE, old)

    def _write(self, kind: p4r.Update.Type.ValueType, entities: Iterable[Entity]) -> None:
        updates = [
            p4r.Update(type=kind, entity=self._codec.encode(entity).encode(self._schema))
            for entity in entities
        ]
        request = p4r.WriteRequest(device_id=1, election_id=p4r.Uint128(low=1), updates=updates)
        self._stub.Write(request, timeout=TIMEOUT_S)

    def inject(self, port: int, frame: bytes) -> Frames:
        mark = next(self._marks)
        marker = gradient(replace(self._marker, round=mark >> 16 & 0xFFFFF, slot=mark & 0xFFFF))
        self._links[port].send(frame)
        self._links[port].send(b"\0\0" + marker if port == CPU_PORT else marker)
        found: Frames = []
        for out in PORTS:
            found += [(out, frame) for frame in self._until(out, marker)]
        return sorted(found)

    def _until(self, port: int, marker: bytes) -> Iterator[bytes]:
        """Yields the frames that leave by a port before the marker; the CPU port puts its header before each."""
        deadline = time.monotonic() + TIMEOUT_S
        link = self._links[port]
        while True:
            if not select.select([link], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"no marker came out of port {port} in {TIMEOUT_S} s")
            frame, (*_, kind, _, _) = link.recvfrom(65536)
            if kind == socket.PACKET_OUTGOING:
                continue
            if frame.endswith(marker[MARKED_BYTES:]):
                return
            yield frame

    def verdicts(self, tree_index: int) -> dict[int, int]:
        name = self._schema.counters["verdicts"].id
        cells = [
            p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=name, index=p4r.Index(index=index)))
            for index in range(tree_index * VERDICTS, (tree_index + 1) * VERDICTS)
        ]
        found = {}
        for answer in self._stub.Read(p4r.ReadRequest(device_id=1, entities=cells), timeout=TIMEOUT_S):
            for entity in answer.entities:
                cell = entity.counter_entry
                if cell.data.packet_count:
                    found[cell.index.index % VERDICTS] = cell.data.packet_count
        return found
