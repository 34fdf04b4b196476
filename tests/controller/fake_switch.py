# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N802
"""A P4Runtime switch in this process: real table, group and arbitration semantics, no packets but READ
and RESET, and faults on order: refuse or swallow the nth update, lose the connection, restart empty."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from enum import Enum

import grpc
from finsy.proto import U128, gnmi_grpc, p4r, p4r_grpc, rpc_code, rpc_status
from google.protobuf.any_pb2 import Any as AnyMessage

UpdateHook = Callable[[int], None]

PORT_COUNTERS = {0x12000002: "port_rx", 0x12000003: "port_tx", 0x12000004: "targeted_tx"}
"""By their number in the P4Info: a prefix, and `@id` of the sources."""


class PushKeeps(Enum):
    """The fate of multicast groups when a pipeline is pushed. BMv2's server forgets them and BMv2 itself does not: they
    cannot be read, and still make copies."""

    NOTHING = "nothing"
    HIDDEN_GROUPS = "hidden groups"
    GROUPS = "groups"


@dataclass
class Client:
    """One open stream."""

    election_id: int
    queue: asyncio.Queue[p4r.StreamMessageResponse | None] = field(default_factory=asyncio.Queue)


@dataclass
class State:
    """State of a switch that is gone after a restart."""

    config: p4r.ForwardingPipelineConfig | None = None
    tables: dict[bytes, p4r.TableEntry] = field(default_factory=dict)
    groups: dict[int, p4r.MulticastGroupEntry] = field(default_factory=dict)
    copies: dict[int, list[int]] = field(default_factory=dict)  # ports that a packet to the group leaves by
    counters: dict[int, int] = field(default_factory=dict)  # packets by cell of the verdicts
    ports: dict[tuple[str, int], int] = field(default_factory=dict)  # bytes by port counter and cell
    before_ports: Callable[[], None] = lambda: None  # is called before a port counter is read


class NoGnmi(gnmi_grpc.gNMIServicer):
    """Requests about ports end with `code`; `asked` counts them."""

    def __init__(self) -> None:
        self.code = grpc.StatusCode.UNIMPLEMENTED
        self.asked = 0

    async def Get(self, request, context):
        self.asked += 1
        await context.abort(self.code, "no ports are told")


class FakeSwitch(p4r_grpc.P4RuntimeServicer):
    """`before_update(n)` is called before the nth update ever (from 1) and may raise; what it raises is
    that update's error. `updates` counts them. A stream that is opened while it is `mute` is never answered; one that
    is opened while it `refuses` ends with that message, and `refused` counts them. While it `forgets_no_stream`, it
    keeps each client whose stream has ended. If it `forgets_ids`, as BMv2, a lower id is primary again once the stream
    of the highest has ended. `writers`: the ids of what was written."""

    def __init__(self, device_id: int = 1) -> None:
        self.device_id = device_id
        self.state = State()
        self.host = "127.0.0.1"
        self.port = 0
        self.updates = 0
        self.pushes = 0
        self.push_keeps = PushKeeps.NOTHING
        self.push_lasts_s = 0.0
        self.log: list[tuple[str, str]] = []
        self.before_update: UpdateHook = lambda n: None
        self.on_packet_out: Callable[[p4r.PacketOut], None] = lambda packet: None
        self.hangs = asyncio.Event()
        self.mute = False
        self.unanswered = 0
        self.refuses = ""
        self.refused = 0
        self.reads = 0
        self.gnmi = NoGnmi()
        self.clients: list[Client] = []
        self.forgets_no_stream = False
        self.highest_id = 0
        self.forgets_ids = False
        self.writers: list[int] = []
        self.credentials: grpc.ServerCredentials | None = None
        self._server: grpc.aio.Server | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    async def start(self) -> None:
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        p4r_grpc.add_P4RuntimeServicer_to_server(self, self._server)
        gnmi_grpc.add_gNMIServicer_to_server(self.gnmi, self._server)
        where = self.address
        if self.credentials is None:
            bound = self._server.add_insecure_port(where)
        else:
            bound = self._server.add_secure_port(where, self.credentials)
        assert bound, f"port {self.port} is taken"
        self.port = bound
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(0)
            self._server = None
        self.clients.clear()
        self.highest_id = 0
        self.forgets_no_stream = False

    async def restart(self) -> None:
        """As after a power cut: no pipeline, no entries, registers 0."""
        await self.stop()
        self.state = State()
        await self.start()

    async def drop_connections(self) -> None:
        """The control channel breaks, the data plane goes on."""
        await self.stop()
        await self.start()

    def end_streams(self) -> None:
        """The switch hangs up, and its server goes on."""
        for client in self.clients:
            client.queue.put_nowait(None)

    def entries(self) -> dict[bytes, bytes]:
        """All that was written, by key, to compare."""
        held = {k: e.SerializeToString(deterministic=True) for k, e in self.state.tables.items()}
        groups = {
            b"group %d" % n: g.SerializeToString(deterministic=True) for n, g in self.state.groups.items()
        }
        return held | groups

    def send_packet_in(self, payload: bytes, metadata: dict[int, bytes]) -> None:
        fields = [p4r.PacketMetadata(metadata_id=i, value=v) for i, v in metadata.items()]
        message = p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=payload, metadata=fields))
        for client in self.clients:
            if client.election_id == self._primary_id():
                client.queue.put_nowait(message)

    # ---- P4Runtime -------------------------------------------------------------------------------

    async def Capabilities(self, request, context):
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.3.0")

    async def StreamChannel(self, request_iterator, context) -> AsyncIterator[p4r.StreamMessageResponse]:
        if self.mute:
            self.unanswered += 1
            await asyncio.Event().wait()
        if self.refuses:
            self.refused += 1
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, self.refuses)
        client: Client | None = None
        requests: asyncio.Queue[p4r.StreamMessageRequest | None] = asyncio.Queue()
        reader = asyncio.create_task(_forward(request_iterator, requests))
        try:
            first = await requests.get()
            if first is None:
                return
            wanted = U128.decode(first.arbitration.election_id)
            if any(c.election_id == wanted for c in self.clients):
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Election id already exists")
            client = Client(wanted)
            self.clients.append(client)
            self.highest_id = max(self.highest_id, wanted)
            self._arbitrate()
            pump = asyncio.create_task(self._pump(requests, client))
            while True:
                message = await client.queue.get()
                if message is None:
                    break
                yield message
        finally:
            reader.cancel()
            if client is not None and client in self.clients and not self.forgets_no_stream:
                pump.cancel()
                self.clients.remove(client)
                if self.forgets_ids:
                    self.highest_id = max((c.election_id for c in self.clients), default=0)
                self._arbitrate()

    async def _pump(self, requests, client: Client) -> None:
        while (request := await requests.get()) is not None:
            if request.HasField("packet"):
                self.on_packet_out(request.packet)
            elif request.HasField("arbitration"):
                client.election_id = U128.decode(request.arbitration.election_id)
                self.highest_id = max(self.highest_id, client.election_id)
                self._arbitrate()
        client.queue.put_nowait(None)

    async def GetForwardingPipelineConfig(self, request, context):
        config = self.state.config
        if config is None:
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                "No forwarding pipeline config set for this device.",
            )
        return p4r.GetForwardingPipelineConfigResponse(config=config)

    async def SetForwardingPipelineConfig(self, request, context):
        await self._check_primary(request, context)
        await asyncio.sleep(self.push_lasts_s)
        if request.config.p4_device_config.startswith(b"bad"):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no such program")
        self.pushes += 1
        old, self.state = self.state, State(config=request.config)
        if self.push_keeps is not PushKeeps.NOTHING:
            self.state.copies = old.copies
        if self.push_keeps is PushKeeps.GROUPS:
            self.state.groups = old.groups
        return p4r.SetForwardingPipelineConfigResponse()

    async def Read(self, request, context):
        self.reads += 1
        while self.hangs.is_set():
            await asyncio.sleep(0.02)
        for entity in request.entities:
            kind = entity.WhichOneof("entity")
            if kind == "table_entry":
                wanted = entity.table_entry
                found = [
                    p4r.Entity(table_entry=e)
                    for e in self.state.tables.values()
                    if wanted.table_id in (0, e.table_id)
                    and (e.is_default_action or not wanted.is_default_action)
                ]
            elif kind == "packet_replication_engine_entry":
                found = [
                    p4r.Entity(
                        packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
                            multicast_group_entry=g
                        )
                    )
                    for g in self.state.groups.values()
                ]
            elif kind == "counter_entry":
                found = [self._counted(e.counter_entry) for e in request.entities]
                yield p4r.ReadResponse(entities=found)
                return
            else:
                await context.abort(grpc.StatusCode.UNIMPLEMENTED, str(kind))
            yield p4r.ReadResponse(entities=found)

    async def Write(self, request, context):
        await self._check_primary(request, context)
        if self.state.config is None:
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                "No forwarding pipeline config set for this device.",
            )
        errors = [self._update(u) for u in request.updates]
        if any(e.canonical_code != rpc_code.OK for e in errors):
            await _abort_with(context, errors)
        return p4r.WriteResponse()

    # ---- semantics -------------------------------------------------------------------------------

    def _counted(self, asked: p4r.CounterEntry) -> p4r.Entity:
        answer = p4r.Entity(counter_entry=asked)
        data, cell = answer.counter_entry.data, asked.index.index
        if asked.counter_id in PORT_COUNTERS:
            self.state.before_ports()
            data.byte_count = self.state.ports.get((PORT_COUNTERS[asked.counter_id], cell), 0)
        else:
            data.packet_count = self.state.counters.get(cell, 0)
        return answer

    def _update(self, update: p4r.Update) -> p4r.Error:
        self.updates += 1
        try:
            self.before_update(self.updates)
        except RuntimeError as error:
            return p4r.Error(canonical_code=rpc_code.INTERNAL, message=str(error), space="fake")
        kind = update.entity.WhichOneof("entity")
        if kind == "table_entry":
            entry = update.entity.table_entry
            return self._store(update.type, self.state.tables, _key(entry), entry)
        group = update.entity.packet_replication_engine_entry.multicast_group_entry
        before = self.state.groups.get(group.multicast_group_id)
        answer = self._store(update.type, self.state.groups, group.multicast_group_id, group)
        if answer.canonical_code == rpc_code.OK:
            self._replicate(update.type, before, group)
        return answer

    def _replicate(self, op, before, group) -> None:
        """As BMv2: a group that is made anew adds its nodes to those that are there."""
        if op == p4r.Update.DELETE:
            self.state.copies.pop(group.multicast_group_id, None)
            return
        copies = self.state.copies.setdefault(group.multicast_group_id, [])
        for replica in before.replicas if before is not None else ():
            copies.remove(replica.egress_port)
        copies.extend(r.egress_port for r in group.replicas)

    def _store(self, op, held, key, value) -> p4r.Error:
        present = key in held
        self.log.append((p4r.Update.Type.Name(op), _name(value)))
        if op == p4r.Update.INSERT and present:
            return p4r.Error(canonical_code=rpc_code.ALREADY_EXISTS, message="exists", space="fake")
        if op != p4r.Update.INSERT and not present:
            return p4r.Error(canonical_code=rpc_code.NOT_FOUND, message="not found", space="fake")
        if op == p4r.Update.DELETE:
            del held[key]
        else:
            held[key] = value
        return p4r.Error(canonical_code=rpc_code.OK)

    def _primary_id(self) -> int:
        return max((c.election_id for c in self.clients), default=0)

    async def _check_primary(self, request, context) -> None:
        sent = U128.decode(request.election_id)
        if sent != self._primary_id() or sent < self.highest_id:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "not primary")
        self.writers.append(sent)

    def _arbitrate(self) -> None:
        """P4Runtime spec 5.1.1: all clients of the device learn which is primary."""
        top = self._primary_id()
        for client in self.clients:
            if top < self.highest_id:
                code = rpc_code.NOT_FOUND
            else:
                code = rpc_code.OK if client.election_id == top else rpc_code.ALREADY_EXISTS
            client.queue.put_nowait(
                p4r.StreamMessageResponse(
                    arbitration=p4r.MasterArbitrationUpdate(
                        device_id=self.device_id,
                        election_id=U128.encode(max(top, self.highest_id)),
                        status=rpc_status.Status(code=code),
                    )
                )
            )


async def _forward(iterator, queue) -> None:
    try:
        async for item in iterator:
            queue.put_nowait(item)
    finally:
        queue.put_nowait(None)


def _key(entry: p4r.TableEntry) -> bytes:
    fields = sorted(m.SerializeToString(deterministic=True) for m in entry.match)
    return b"%d/%d/" % (entry.table_id, entry.priority) + b"|".join(fields)


def _name(value) -> str:
    return str(value.table_id) if isinstance(value, p4r.TableEntry) else "multicast"


async def _abort_with(context, errors: list[p4r.Error]) -> None:
    status = rpc_status.Status(code=rpc_code.UNKNOWN, message="some updates failed")
    for error in errors:
        packed = AnyMessage()
        packed.Pack(error)
        status.details.append(packed)
    await context.abort(
        grpc.StatusCode.UNKNOWN,
        "some updates failed",
        trailing_metadata=(("grpc-status-details-bin", status.SerializeToString()),),
    )
