# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The switches of a suite: one is softswitch, the others are fakes in this process. All forget election ids once their
streams have ended."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc
import yaml
from finsy.proto import p4r, p4r_grpc
from softswitch.testing.simple_switch import free_port

from netfold.controller.features.registry import FEATURES
from netfold.controller.jobs.revisions import Revision
from netfold.controller.jobs.store import Store
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.switches.desired_state import desired_contents
from netfold.controller.switches.devicefile import read_devices
from netfold.controller.switches.election import controller_election_id
from netfold.controller.switches.entries import Contents
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import NO_ELEMENTS, element_named, united
from netfold.controller.switches.programs import programs_of, with_programs
from netfold.topologies.addressing import addresses
from netfold.topologies.spec import fabric_from_spec, load_fabric
from tests.controller.deployment import DEADLINE_S, PIPELINE, decoded_contents, switch_contents
from tests.controller.fake_switch import FakeSwitch
from tests.ha.machines import HUB

LANES = 32
SOFTSWITCH = "leaf1"
FAKES = ("leaf2", "spine1", "spine2")
FABRIC = {"name": "three", "generate": {"leaf_spine": {"leaves": 2, "spines": 2, "hosts_per_leaf": 4}}}
_TERM_BITS = controller_election_id(2, 1) - controller_election_id(1, 1)


def term_of(election_id: int) -> int:
    return (election_id - controller_election_id(0, 0)) // _TERM_BITS


class Switches:
    """`fabric_file` and `file` are the arguments of controllers that run them."""

    def __init__(self, folder: Path) -> None:
        self.fabric_file, self.file = folder / "fabric.yaml", folder / "switches.yaml"
        self.fabric_file.write_text(yaml.safe_dump(FABRIC))
        self._folder = folder
        self._fabric = load_fabric(str(self.fabric_file))
        self._written = folder / "writers"
        self._written.touch()
        self.fakes: dict[str, FakeSwitch] = {}
        self.softswitch: subprocess.Popen[bytes]
        self._channel: grpc.aio.Channel

    async def start(self, stack: AsyncExitStack) -> None:
        known = addresses(self._fabric).switches
        for name in FAKES:
            fake = self.fakes[name] = FakeSwitch(known[name].device_id)
            fake.host, fake.port, fake.forgets_ids = HUB, free_port(), True
            await fake.start()
            stack.push_async_callback(fake.stop)
        where = f"{HUB}:{free_port()}"
        command = [
            *(sys.executable, "-m", "tests.ha.recorded_switch", self._written, "--no-p4"),
            *("--device-id", known[SOFTSWITCH].device_id, "--grpc-server-addr", where, "--insecure-remote"),
        ]
        with (self._folder / "softswitch.log").open("wb") as log:
            self.softswitch = subprocess.Popen([str(c) for c in command], stdout=log, stderr=log)
        stack.callback(self.softswitch.wait)
        stack.callback(self.softswitch.kill)
        self._channel = await stack.enter_async_context(grpc.aio.insecure_channel(where))
        await asyncio.wait_for(self._channel.channel_ready(), DEADLINE_S)
        found = {name: fake.address for name, fake in self.fakes.items()} | {SOFTSWITCH: where}
        listed = {name: {"address": address} for name, address in found.items()}
        self.file.write_text(yaml.safe_dump({"switches": listed}))

    def writers(self) -> dict[str, list[int]]:
        """The terms of all writes, in the order of each switch."""
        ids = {name: fake.writers for name, fake in self.fakes.items()}
        ids[SOFTSWITCH] = [int(line) for line in self._written.read_text().splitlines()]
        return {name: [term_of(i) for i in found] for name, found in ids.items()}

    async def held(self) -> dict[str, Contents]:
        """The entries of all switches. Raises AioRpcError."""
        entities = [
            p4r.Entity(table_entry=p4r.TableEntry()),
            p4r.Entity(
                packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
                    multicast_group_entry=p4r.MulticastGroupEntry()
                )
            ),
        ]
        device = addresses(self._fabric).switches[SOFTSWITCH].device_id
        request = p4r.ReadRequest(device_id=device, entities=entities)
        answers = p4r_grpc.P4RuntimeStub(self._channel).Read(request, timeout=DEADLINE_S)
        read = [entity async for answer in answers for entity in answer.entities]
        found = {name: switch_contents(fake) for name, fake in self.fakes.items()}
        return found | {SOFTSWITCH: decoded_contents(read)}

    def desired(self, store: Store) -> dict[str, Contents]:
        """The entries that a store asks for."""
        devices = read_devices(self.file, self._fabric, LANES)
        fabric = fabric_from_spec(store.fabric)
        limited = with_programs(fabric, programs_of(fabric, PIPELINE, devices))
        packets = PacketModel(LANES)
        config = FabricConfig(
            limited, addresses(fabric), store.mark, devices=devices, packet_bits=packets.frame_bits
        )
        revisions = {s.name: store.revisions(s.name) for s in fabric.switches}
        newest = {s: Revision(max(last), last[max(last)]) for s, last in revisions.items() if last}
        drained = united(
            element_named(fabric, w.element) for w in store.withdrawals() if w.intent is Intent.DRAIN
        )
        return desired_contents(config, store.jobs(), NO_ELEMENTS, newest, FEATURES, drained)


@asynccontextmanager
async def switches(folder: Path) -> AsyncIterator[Switches]:
    """Switches that answer."""
    made = Switches(folder)
    async with AsyncExitStack() as stack:
        await made.start(stack)
        yield made
