# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A whole control plane in one process: fake switches for a fabric, the controller, its service, and members."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import finsy as fy
import grpc
import pytest
from finsy.proto import p4r

from netfold.controller.core import Controller
from netfold.controller.features.registry import FEATURES
from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.jobs.store import Store
from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.planning.plan import Plan
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.scheduling.planning_client import PlanBackend
from netfold.controller.service.explain import Explainer
from netfold.controller.service.leadership import Leadership
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import service_of
from netfold.controller.subsystems import Options
from netfold.controller.switches.desired_state import desired_contents
from netfold.controller.switches.devices import Device
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.entries import Codec, Contents
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements
from netfold.controller.switches.finsy_adapter import FinsyConnection, read_schema
from netfold.controller.switches.fleet import FleetOptions
from netfold.controller.switches.port_counters import PORT_RX, PORT_TX, cell
from netfold.controller.switches.server_forms import expand_action_sets
from netfold.controller.switches.session import RPC_TIMEOUT_S
from netfold.controller.switches.stored_programs import ProgramFiles, note_programs, with_stored_programs
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.topologies.addressing import Addressing, addresses
from netfold.topologies.fabric import Fabric
from tests.controller.awake import Awake
from tests.controller.fake_drivers import FakeDrivers
from tests.controller.fake_stratum import FakeStratum
from tests.controller.fake_switch import FakeSwitch

COMPILED = Path(__file__).resolve().parents[2] / "p4src" / "compiled"


def pipeline(lanes: int) -> Pipeline:
    return Pipeline(
        COMPILED / f"netfold-v1model-{lanes}.p4info.txtpb", COMPILED / f"netfold-v1model-{lanes}.json"
    )


PIPELINE = pipeline(32)
TIMEOUTS = ControllerTimeouts(reroute=0.1, restart=3.0, start=10.0, install=5.0)
DEADLINE_S = 60.0


class PlanThread:
    """Plans in a thread: tests start no process for each controller."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric

    async def plan(self, request: PlanRequest) -> Plan:
        return await asyncio.to_thread(plan_job, self.fabric, request)


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Replaces `Store.change`: the disk has no room."""
    raise StoreError("database or disk is full")
    yield


class Deployment:
    """`start` a controller, `kill` it as a crash would, start the next one on the same store."""

    def __init__(
        self,
        fabric: Fabric,
        folder: Path,
        *,
        probe_s: float = 0.0,
        audit_s: float = 30.0,
        rpc_timeout_s: float = RPC_TIMEOUT_S,
        timeouts: ControllerTimeouts = TIMEOUTS,
        devices: Mapping[str, Device] | None = None,
        plans: PlanBackend | None = None,
        lanes: int = 32,
    ) -> None:
        self.pipeline = pipeline(lanes)
        self.fabric = fabric
        self.plans = plans or PlanThread(fabric)
        self.folder = folder
        self.devices = devices or {}
        self.switches = {s.name: self._switch(s.name, i + 1) for i, s in enumerate(fabric.switches)}
        fleet = FleetOptions(audit_s, rpc_timeout_s=rpc_timeout_s)
        self.options = Options(PacketModel(lanes), self.pipeline, timeouts, fleet, probe_s)
        self.cut: set[frozenset[str]] = set()
        self.may_write = lambda: True
        self.slot: Callable[[str, int], tuple[int, int]] = lambda switch, slot: (0, 0)
        for name, switch in self.switches.items():
            switch.on_packet_out = lambda packet, name=name: self._carry(name, packet)
        self.controller: Controller
        self.store: Store
        self._leadership: Leadership
        self._running: asyncio.Task[None] | None = None

    def _device(self, name: str) -> Device:
        return self.devices.get(name, Device())

    def _switch(self, name: str, number: int) -> FakeSwitch:
        device = self._device(name)
        if device.full_width:
            return FakeDrivers(self.pipeline.p4info)
        kind = FakeSwitch if device.one_shot else FakeStratum
        return kind(device.device_id or number)

    def _carry(self, name: str, packet: p4r.PacketOut) -> None:
        """READ packets: answered by the switch itself, also by way of a loopback port, or by the neighbor unless the
        link is cut."""
        egress = int.from_bytes(packet.metadata[0].value, "big")
        if egress == 0:
            self._answer(name, self._device(name).cpu_port, packet.payload)
            return
        if egress in [x.port for x in self.fabric.switch(name).loopbacks]:
            self._answer(name, egress, packet.payload)
            return
        near = next(n for n, p in self.fabric.ports[name].items() if p == egress)
        self._count(name, PORT_TX, egress, len(packet.payload))
        if frozenset((name, near)) not in self.cut:
            ingress = self.fabric.ports[near][name]
            self._count(near, PORT_RX, ingress, len(packet.payload))
            self._answer(near, ingress, packet.payload)

    def _count(self, switch: str, counter: str, port: int, size: int) -> None:
        ports, at = self.switches[switch].state.ports, (counter, cell(port, False))
        ports[at] = ports.get(at, 0) + size

    def _answer(self, name: str, ingress: int, payload: bytes) -> None:
        """A READ's answer: the tag in the packet (byte 4 of the header), the bitmap beside it."""
        slot = int.from_bytes(payload[50:52], "big")
        tag, bitmap = self.slot(name, slot)
        answer = payload[:46] + tag.to_bytes(4, "big") + payload[50:]
        metadata = {1: ingress.to_bytes(2, "big"), 2: b"\0", 3: bitmap.to_bytes(4, "big")}
        self.switches[name].send_packet_in(answer, metadata)

    def addressing(self) -> Addressing:
        known = addresses(self.fabric)
        moved = {
            name: dataclasses.replace(a, grpc_port=self.switches[name].port)
            for name, a in known.switches.items()
        }
        return Addressing(known.hosts, moved)

    def start(self) -> Controller:
        self.store = Store(self.folder / "state.db", fabric_text(self.fabric))
        self._leadership = Leadership(self.store)
        term = self._leadership.try_lead()
        assert term is not None
        files = ProgramFiles(self.folder / "programs")
        devices = with_stored_programs(self.store, self.fabric, self.pipeline, self.devices, files)
        with self.store.change():
            own = {name: devices.get(name, Device()).pipeline or self.pipeline for name in self.switches}
            note_programs(self.store, own)
        config = FabricConfig(self.fabric, self.addressing(), self.store.mark, devices=devices)
        options = dataclasses.replace(self.options, pipeline_of=files.pipeline)
        connect = functools.partial(FinsyConnection, may_write=lambda: self.may_write())  # noqa: PLW0108 (tests replace it)
        self.controller = Controller(config, self.store, options, term, self.plans, connect=connect)
        self._running = asyncio.create_task(self.controller.run())
        return self.controller

    async def kill(self) -> None:
        """Nothing is tidied up: whatever was under way stays undone."""
        await self.end_controller()
        self.store.close()
        self._leadership.release()

    async def end_controller(self) -> None:
        """A registry ends so where its process does not lead any more."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None

    async def restart(self) -> None:
        """Kill the controller, and start the next one."""
        await self.kill()
        self.start()
        await self.settled()

    async def until(self, true: Callable[[], bool], what: str, within_s: float = DEADLINE_S) -> None:
        """Wait for the controller's own pulse until something holds; a controller that fell is told as what felled
        it."""
        awake = Awake()
        while not true():
            if self._running is not None and self._running.done():
                self._running.result()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self.controller.state.changes.wait()), 0.05)
            if awake() > within_s and not true():
                raise TimeoutError(f"not within {within_s:g} s: {what}")

    async def settled(self) -> None:
        """Every switch has the newest target, and no job is on its way."""

        def done() -> bool:
            fleet = self.controller.switches.fleet
            return all(fleet.holds(n, fleet.version) for n in self.switches) and not any(
                j.state is JobState.INSTALLING for j in self.controller.state.registry.all()
            )

        await self.until(done, "settled")

    async def settled_exactly(self) -> None:
        await self.settled()
        self.assert_exact()

    async def idle(self) -> None:
        """Settled, with nothing under way that could change it again."""
        while True:
            await self.settled()
            if not self.controller.state.tasks.under_way:
                return
            await asyncio.gather(*self.controller.state.tasks.under_way)

    def held(self) -> dict[str, Contents]:
        return {name: switch_contents(switch, self.pipeline) for name, switch in self.switches.items()}

    def job(self, name: str) -> JobRecord:
        return self.controller.state.registry.get(name)

    def state(self, name: str) -> JobState:
        return self.job(name).state

    def spine_of(self, name: str = "job") -> str:
        """A spine that the job's trees cross."""
        placement = self.job(name).placement
        assert placement is not None
        return next(n for link in placement.links for n in link if n.startswith("spine"))

    async def explain(self, job: str) -> list[str]:
        controller = self.controller
        explainer = Explainer(
            controller.state, controller.switches, controller.jobs.lifecycle, controller.planning
        )
        return await explainer.explain(job)

    async def runs(self, name: str) -> None:
        await self.until(lambda: self.state(name) is JobState.RUNNING, f"{name} runs")

    async def run(self, text: str) -> JobRecord:
        """Submit a job, and wait until it runs."""
        name = (await self.controller.requests.submit(text, queue=False)).name
        await self.runs(name)
        return self.job(name)

    def assert_exact(self, broken: FailedElements | None = None) -> None:
        """Each switch holds what the store asks for, to the entry."""
        wanted = desired_contents(
            self.controller.state.config,
            self.store.jobs(),
            broken or self.controller.state.failures.failed,
            self.controller.state.registry.revisions(),
            FEATURES,
        )
        for name, switch in self.switches.items():
            held, exact = switch_contents(switch, self.pipeline), wanted[name]
            if not self._device(name).one_shot:
                exact = expand_action_sets(exact)
            assert held == exact, (
                f"{name}: too many {[str(held[k]) for k in held.keys() - exact.keys()]}, "
                f"missing {[str(exact[k]) for k in exact.keys() - held.keys()]}"
            )


def switch_contents(switch: FakeSwitch, running: Pipeline = PIPELINE) -> Contents:
    messages = [p4r.Entity(table_entry=e) for e in switch.state.tables.values()]
    messages += [
        p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(multicast_group_entry=g))
        for g in switch.state.groups.values()
    ]
    if isinstance(switch, FakeStratum):
        messages += [p4r.Entity(action_profile_member=m) for m in switch.members.values()]
        messages += [p4r.Entity(action_profile_group=g) for g in switch.sets.values()]
    found = decoded_contents(messages, running)
    assert len(found) == len(messages)
    return found


def decoded_contents(messages: Iterable[p4r.Entity], running: Pipeline = PIPELINE) -> Contents:
    """Decode entities to contents, without the entries that a program has in itself."""
    schema = read_schema(running.p4info)
    codec = Codec(schema)
    decoded = (codec.decode(fy.p4entity.decode_entity(message, schema)) for message in messages)
    return {entity.key: entity for entity in decoded if entity is not None}


@contextlib.asynccontextmanager
async def deployed(fabric: Fabric, folder: Path, **options: Any) -> AsyncIterator[Deployment]:
    """A deployment with its controller started."""
    deployment = Deployment(fabric, folder, **options)
    for switch in deployment.switches.values():
        await switch.start()
    try:
        deployment.start()
        yield deployment
    finally:
        await deployment.kill()
        for switch in deployment.switches.values():
            await switch.stop()


@contextlib.asynccontextmanager
async def ready(fabric: Fabric, folder: Path, **options: Any) -> AsyncIterator[Deployment]:
    """A deployment whose switches have their first target."""
    async with deployed(fabric, folder, **options) as deployment:
        await deployment.settled()
        yield deployment


@contextlib.asynccontextmanager
async def served(
    fabric: Fabric, folder: Path, **options: Any
) -> AsyncIterator[tuple[Deployment, pb_grpc.ControllerStub]]:
    """Such a deployment, and a stub for its service."""
    async with ready(fabric, folder, **options) as deployment, asked(deployment) as stub:
        yield deployment, stub


@contextlib.asynccontextmanager
async def asked(deployment: Deployment) -> AsyncIterator[pb_grpc.ControllerStub]:
    """The service over a unix socket, and a stub for it."""
    where = f"unix:{deployment.folder}/s"
    async with (
        serving(service_of(deployment.controller), where, None),
        grpc.aio.insecure_channel(where) as channel,
    ):
        yield pb_grpc.ControllerStub(channel)


async def code_of(call: Awaitable[object]) -> grpc.StatusCode:
    """Returns the status code of a call that has to fail."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    code: grpc.StatusCode = caught.value.code()
    return code


class MemberStream:
    """One JoinJob stream, as a worker opens it: of a process of its own, or of an earlier stream's."""

    def __init__(
        self, stub: pb_grpc.ControllerStub, job: str, host: str, process_of: MemberStream | None = None
    ) -> None:
        self.job, self.host = job, host
        self.process: int = secrets.randbits(64) if process_of is None else process_of.process
        self.call = stub.JoinJob()

    async def say(self, **fields: object) -> None:
        fields = {"process": self.process, "supports_targets": True, **fields}
        await self.call.write(pb.MemberUpdate(job=self.job, host=self.host, **fields))

    async def hear(self) -> pb.ControllerUpdate:
        """The next notice that says more than the lease."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                notice = await self.call.read()
                assert isinstance(notice, pb.ControllerUpdate), notice
                if notice.WhichOneof("update"):
                    return notice

    async def drain(self) -> None:
        """Reads until the controller ends the stream."""
        async with asyncio.timeout(DEADLINE_S):
            while await self.call.read() is not grpc.aio.EOF:
                pass
