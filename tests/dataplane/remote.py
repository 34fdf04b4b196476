# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch that is already there, reached by P4Runtime, with interfaces of this machine cabled to its ports: a Tofino,
or anything else that serves the program. NETFOLD_SWITCH is `tofino-model` or `tofino2-model` (stack.py), or names a
file that says where the switch is (docs/reference/tofino.md):

    address: 10.0.0.11:9339
    p4info: out/tofino/tofino/netfold.p4info.txtpb
    config: out/tofino/tofino/netfold.pb.bin
    lanes: 32
    cpu_port: 192
    one_shot: false              # as Stratum wants it; the drivers' own server takes sets with their routes
    full_width: false            # true for the drivers' own server
    least_bytes: 60
    quiet_ms: 20
    answer_s: 10                 # for an answer, and for a frame to come out
    shared_push: false           # true where a push takes seconds: tests then empty what the one before has left
    together: 1                  # frames of one port that the isolation suite may send before it looks at what left
    trees: 512                   # of the program: p4src/common/sizes.p4, tna/arch.p4
    parses_options: false
    ports:                       # of the suite, 1 to 7: the switch's own number, and the interface cabled to it
      1: {port: 132, interface: eth1}

As with BMv2 (bmv2.py), every frame is followed by a marker that leaves by all ports. Hardware keeps the order of what
takes the same way through it, but a copy of the marker may pass a unicast frame: so what still comes within
`quiet_ms` after the last marker counts, too.
"""

from __future__ import annotations

import itertools
import os
import queue
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import finsy as fy
import grpc
import yaml
from finsy.proto import p4r
from finsy.proto.p4.v1 import p4runtime_pb2_grpc
from pydantic import BaseModel, ConfigDict, Field, model_validator

from netfold.controller.switches.entries import Action, Codec, Contents, Entity, MulticastGroup, TableEntry
from netfold.controller.switches.server_forms import expand_action_sets, pad_packet_to_width, pad_to_width
from netfold.controller.switches.tables import CPU_PORT, downlink, multicast_results, result_group
from netfold.p4src.manifest import program_of
from netfold.protocol.wire import Kind
from tests.dataplane.device import VERDICTS, Device, Frames
from tests.dataplane.frames import JOB_PORT, LANES, NETFOLD_AT, Netfold, gradient

VARIABLE = "NETFOLD_SWITCH"
PORTS = range(1, 8)
MARKER_EPOCH = 4095
PUSHES = 12
"""A push may take so many times as long as an answer."""

_ETH_P_ALL = 3
_DEVICE_PORTS = ("ingress_port", "port")
"""Match fields and parameters that hold a port."""


class RemotePort(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    port: Annotated[int, Field(ge=1, le=511)]
    interface: str


class RemoteSwitch(BaseModel):
    """The file. Paths count from its folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str
    device_id: int = 1
    p4info: Path
    config: Path
    lanes: int = LANES
    cpu_port: int = CPU_PORT
    one_shot: bool = True
    full_width: bool = False
    least_bytes: int = 0
    quiet_ms: float = 0.0
    answer_s: Annotated[float, Field(gt=0)] = 10.0
    shared_push: bool = False
    together: Annotated[int, Field(ge=1)] = 1
    trees: int = 1024
    parses_options: bool = True
    ports: dict[int, RemotePort]

    @model_validator(mode="after")
    def _all_ports(self) -> RemoteSwitch:
        if set(self.ports) != set(PORTS):
            raise ValueError(f"ports {sorted(self.ports)} are given; the suite uses 1 to {PORTS[-1]}")
        if self.lanes != LANES:
            raise ValueError(
                f"the program has {self.lanes} lanes; the suite is for {LANES}: build it with --lanes {LANES}"
            )
        return self


def described() -> Path | None:
    """The file that names the switch, if there is to be one."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


@contextmanager
def remote() -> Iterator[RemoteDevice]:
    path = described()
    assert path is not None
    with opened(RemoteSwitch.model_validate(yaml.safe_load(path.read_text())), path.parent) as device:
        yield device


@contextmanager
def opened(spec: RemoteSwitch, folder: Path) -> Iterator[RemoteDevice]:
    """The switch that is there; paths count from the folder."""
    with ExitStack() as stack:
        links = {n: stack.enter_context(_listening(p.interface)) for n, p in spec.ports.items()}
        options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        channel = stack.enter_context(grpc.insecure_channel(spec.address, options))
        grpc.channel_ready_future(channel).result(timeout=spec.answer_s)
        device = RemoteDevice(spec, folder, links, channel)
        stack.callback(device.close)
        yield device


@contextmanager
def _listening(interface: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        raw.bind((interface, _ETH_P_ALL))
        yield raw


class RemoteDevice(Device):
    """The suite's ports are 1 to 7 and CPU_PORT; entries and packets are renumbered on their way there and back."""

    def __init__(
        self, spec: RemoteSwitch, folder: Path, links: dict[int, socket.socket], channel: grpc.Channel
    ) -> None:
        self.least_bytes, self.trees = spec.least_bytes, spec.trees
        self.parses_options = spec.parses_options
        self.shared_push, self.together = spec.shared_push, spec.together
        self._spec, self._links = spec, links
        self._config = (folder / spec.config).read_bytes()
        self._schema = fy.P4Schema(folder / spec.p4info)
        self.children = program_of(folder / spec.p4info).children
        self._codec = Codec(self._schema)
        self._out = {n: p.port for n, p in spec.ports.items()} | {CPU_PORT: spec.cpu_port}
        self._back = {own: n for n, own in self._out.items()}
        self._held: Contents = {}
        self._stale: set[object] = set()
        """Entities that it holds and that the current test has not asked for."""
        self._counted: Counter[tuple[int, int]] = Counter()  # before `start_over`, by (tree, verdict)
        self._marks = itertools.count()
        self._marker = Netfold(Kind.RESULT, spec.trees - 1, MARKER_EPOCH, lanes=[0] * spec.lanes)
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self._packets: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._bell = socket.socketpair()  # rings when a packet-in is there
        self._stream = self._stub.StreamChannel(iter(self._requests.get, None))
        self._id = p4r.Uint128(low=int(time.time()))  # above that of the run before
        election = p4r.MasterArbitrationUpdate(device_id=spec.device_id, election_id=self._id)
        self._requests.put(p4r.StreamMessageRequest(arbitration=election))
        first = next(self._stream)
        assert first.arbitration.status.code == 0, f"another controller is primary: {first}"
        self._reader = threading.Thread(target=self._read_stream, daemon=True)
        self._reader.start()
        self.clear()

    def close(self) -> None:
        self._requests.put(None)
        self._stream.cancel()
        self._reader.join(self._spec.answer_s)
        for end in self._bell:
            end.close()

    def clear(self) -> None:
        """A new pipeline: nothing is left of the old one's tables, registers and counters, nor of its multicast groups,
        which may outlive it."""
        self._write(p4r.Update.DELETE, [e for e in self._held.values() if isinstance(e, MulticastGroup)])
        self._held = {}
        self._stale.clear()
        self._counted.clear()
        self._stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=self._spec.device_id,
                election_id=self._id,
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=p4r.ForwardingPipelineConfig(
                    p4info=self._schema.p4info, p4_device_config=self._config
                ),
            ),
            timeout=PUSHES * self._spec.answer_s,
        )
        self._write(p4r.Update.DELETE, list(self._groups()))
        marker = self.trees - 1
        self.insert([result_group(marker, self._out), downlink(marker, marker)])
        self.insert(multicast_results(port, JOB_PORT, marker, MARKER_EPOCH) for port in self._out)
        self._own = set(self._held)

    def start_over(self, counted: Counter[tuple[int, int]]) -> None:
        """Without a push: no entries, and counts as if from 0, where `counted` has been since the last time. The
        registers stay as they are. Entries go before the next frame; those that are wanted again by then stay."""
        self._stale |= set(self._held) - self._own
        self._counted += counted

    def _sweep(self) -> None:
        self._remove([self._held[key] for key in self._stale])

    def _remove(self, old: list[Entity]) -> None:
        """Entries go before the groups that they lead to."""
        self._write(p4r.Update.DELETE, sorted(old, key=lambda e: not isinstance(e, TableEntry)))
        for entity in old:
            del self._held[entity.key]
            self._stale.discard(entity.key)

    def _groups(self) -> Iterator[MulticastGroup]:
        """The groups that the switch says it has."""
        request = p4r.ReadRequest(
            device_id=self._spec.device_id, entities=[fy.P4MulticastGroupEntry().encode(self._schema)]
        )
        for answer in self._stub.Read(request, timeout=self._spec.answer_s):
            for entity in answer.entities:
                decoded = self._codec.decode(fy.p4entity.decode_entity(entity, self._schema))
                assert isinstance(decoded, MulticastGroup)
                yield decoded

    def insert(self, entities: Iterable[Entity]) -> None:
        for entity in entities:
            # one by one, as members and groups have to be there before the routes that name them
            written = {e.key: e for e in self._written(entity)}
            self._remove(
                [self._held[k] for k, e in written.items() if k in self._stale and self._held[k] != e]
            )
            self._stale -= set(written)
            new = [e for key, e in written.items() if key not in self._held]
            for one in sorted(new, key=lambda e: isinstance(e, TableEntry)):
                self._write(p4r.Update.INSERT, [one])
            self._held |= {e.key: e for e in new}

    def delete(self, entities: Iterable[Entity]) -> None:
        old = [self._renumbered(entity) for entity in entities]
        self._write(p4r.Update.DELETE, old)
        for entity in old:
            del self._held[entity.key]

    def inject(self, port: int, frame: bytes) -> Frames:
        return self.inject_all(port, [frame])

    def inject_all(self, port: int, frames: Iterable[bytes]) -> Frames:
        """One after the other, and a marker behind the last one."""
        self._sweep()
        mark = next(self._marks)
        marker = gradient(replace(self._marker, round=mark >> 16 & 0xFFFFF, slot=mark & 0xFFFF))
        for frame in frames:
            self._send(port, frame)
        self._send(port, b"\0\0" + marker if port == CPU_PORT else marker)
        found: Frames = []
        awaited, deadline = set(self._out), time.monotonic() + self._spec.answer_s
        while awaited:
            if time.monotonic() >= deadline:
                raise TimeoutError(
                    f"no marker came out of ports {sorted(awaited)} in {self._spec.answer_s:g} s"
                )
            for out, data in self._arrived(deadline - time.monotonic()):
                if data[NETFOLD_AT + 6 * (out == CPU_PORT) :].startswith(marker[NETFOLD_AT:]):
                    awaited.discard(out)
                else:
                    found.append((out, data))
        quiet = time.monotonic() + self._spec.quiet_ms / 1000
        while (left := quiet - time.monotonic()) > 0:
            found += self._arrived(left)
        return sorted(found)

    def verdicts(self, tree_index: int) -> dict[int, int]:
        name = self._schema.counters["verdicts"].id
        cells = [
            p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=name, index=p4r.Index(index=index)))
            for index in range(tree_index * VERDICTS, (tree_index + 1) * VERDICTS)
        ]
        request = p4r.ReadRequest(device_id=self._spec.device_id, entities=cells)
        found = {}
        for answer in self._stub.Read(request, timeout=self._spec.answer_s):
            for entity in answer.entities:
                cell = entity.counter_entry
                verdict = cell.index.index % VERDICTS
                if packets := cell.data.packet_count - self._counted[tree_index, verdict]:
                    found[verdict] = packets
        return found

    # ---- entries ---------------------------------------------------------------------------------

    def _written(self, entity: Entity) -> list[Entity]:
        known = self._renumbered(entity)
        return [known] if self._spec.one_shot else list(expand_action_sets({known.key: known}).values())

    def _renumbered(self, entity: Entity) -> Entity:
        if isinstance(entity, MulticastGroup):
            return replace(entity, ports=tuple(sorted(self._out[p] for p in entity.ports)))
        assert isinstance(entity, TableEntry)
        match = tuple(
            (k, self._out[v] if k in _DEVICE_PORTS and isinstance(v, int) else v) for k, v in entity.match
        )
        return replace(entity, match=match, actions=tuple(map(self._renumbered_action, entity.actions)))

    def _renumbered_action(self, action: Action) -> Action:
        return replace(
            action, args=tuple((k, self._out[v] if k in _DEVICE_PORTS else v) for k, v in action.args)
        )

    def _write(self, kind: p4r.Update.Type.ValueType, entities: list[Entity]) -> None:
        if not entities:
            return
        updates = [p4r.Update(type=kind, entity=self._encoded(e)) for e in entities]
        request = p4r.WriteRequest(device_id=self._spec.device_id, election_id=self._id, updates=updates)
        self._stub.Write(request, timeout=self._spec.answer_s)

    def _encoded(self, entity: Entity) -> p4r.Entity:
        encoded = self._codec.encode(entity).encode(self._schema)
        return pad_to_width(encoded, self._schema) if self._spec.full_width else encoded

    # ---- frames ----------------------------------------------------------------------------------

    def _send(self, port: int, frame: bytes) -> None:
        if port != CPU_PORT:
            self._links[port].send(frame.ljust(self.least_bytes, b"\0"))
            return
        (head,) = struct.unpack_from(">H", frame)
        fields = {"egress_port": self._out.get(head >> 7, head >> 7), "padding": head & 0x7F}
        packet = fy.P4PacketOut(frame[2:], **fields).encode_update(self._schema)
        assert isinstance(packet, p4r.StreamMessageRequest)
        self._requests.put(pad_packet_to_width(packet, self._schema) if self._spec.full_width else packet)

    def _arrived(self, timeout_s: float) -> Frames:
        """Returns the frames that have come by now, or within the time if none has."""
        found: Frames = []
        ready, _, _ = select.select([self._bell[0], *self._links.values()], [], [], timeout_s)
        if self._bell[0] in ready:
            self._bell[0].recv(4096)
        for port, link in self._links.items():
            if link in ready:
                data, (*_, kind, _, _) = link.recvfrom(65536)
                if kind != socket.PACKET_OUTGOING:
                    found.append((port, data))
        while not self._packets.empty():
            found.append((CPU_PORT, self._packets.get()))
        return found

    def _read_stream(self) -> None:
        try:
            for message in self._stream:
                if message.HasField("packet"):
                    self._packets.put(self._packet_in(message.packet))
                    self._bell[1].send(b".")
        except grpc.RpcError:
            return  # closed, or the switch went away: the next call says so

    def _packet_in(self, packet: p4r.PacketIn) -> bytes:
        """The frame as the switch sent it, with its header and the suite's port numbers."""
        headers = {h.preamble.name: h.metadata for h in self._schema.p4info.controller_packet_metadata}
        names = {m.id: m.name for m in headers["packet_in"]}
        values = {names[m.metadata_id]: int.from_bytes(m.value, "big") for m in packet.metadata}
        ingress = self._back.get(values["ingress_port"], values["ingress_port"])
        bitmap = values["bitmap"].to_bytes(self.children // 8, "big")
        return struct.pack(">H", ingress << 7 | values["padding"]) + bitmap + packet.payload
