# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A slot of a job and the fields of its packets, as an operator reads them, and which contributions and sums the open
slots of switches lack."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from typing import cast

import grpc
from typer.testing import CliRunner

from netfold.controller.health import slot_access
from netfold.controller.health.slot_access import SlotAccess
from netfold.controller.jobs.records import AllocatedTree
from netfold.controller.lifecycle.member_status import Progress, TreeProgress
from netfold.controller.operator.job_commands import app as job_app
from netfold.controller.planning.plan import Edge, Tree
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import service_of
from netfold.controller.service.slot_reading import OpenSlots, read_open_slots
from netfold.controller.switches.management import SlotView
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.wire import Kind
from netfold.topologies.generators import single_switch
from netfold.topologies.spec import load_fabric
from tests.controller.deployment import code_of, served

SPEC = "name: job\nworkers: 2\nscheme: switchml\nrate: 20\n"


@asynccontextmanager
async def _job(tmp_path):
    async with served(single_switch(3), tmp_path) as (deployment, stub):
        await deployment.run(SPEC)
        yield deployment, stub


def _request(switch: str = "s1", job: str = "job", slot: int = 3, tree: int = 0) -> pb.ReadSlotRequest:
    return pb.ReadSlotRequest(switch=switch, job=job, slot=slot, tree=tree)


async def test_a_slot_is_read_at_its_register_and_names_the_children(tmp_path):
    async with _job(tmp_path) as (deployment, stub):
        allocated = deployment.job("job").placement.trees[0]
        register = allocated.bases["s1"] + 3
        deployment.slot = lambda switch, slot: (
            (1 << 20 | 5, 0b10) if (switch, slot) == ("s1", register) else (0, 0)
        )
        found = await stub.ReadSlot(_request())
        assert (found.tree, found.slots, found.register) == (allocated.tree, allocated.slots, register)
        assert (found.epoch, found.round) == (1, 5)
        assert (list(found.contributors), list(found.missing)) == (["h2"], ["h1"])
        assert len(found.lanes) == 32
        assert (await stub.ReadSlot(_request(slot=4))).epoch == 0


async def test_what_is_no_slot_is_refused(tmp_path, monkeypatch):
    async with _job(tmp_path) as (deployment, stub):
        slots = deployment.job("job").placement.trees[0].slots
        for request, code in (
            (_request(job="none"), grpc.StatusCode.NOT_FOUND),
            (_request(switch="h1"), grpc.StatusCode.INVALID_ARGUMENT),
            (_request(slot=slots), grpc.StatusCode.INVALID_ARGUMENT),
            (_request(tree=1000), grpc.StatusCode.INVALID_ARGUMENT),
        ):
            assert await code_of(stub.ReadSlot(request)) == code
        deployment.switches["s1"].on_packet_out = lambda packet: None
        monkeypatch.setattr(slot_access, "ANSWER_TIMEOUT_S", 0.3)
        assert await code_of(stub.ReadSlot(_request())) == grpc.StatusCode.ABORTED


async def test_the_commands_print_the_slot_and_the_fields_of_packets(tmp_path, monkeypatch):
    async with _job(tmp_path) as (deployment, _):
        deployment.slot = lambda switch, slot: (1 << 20 | 5, 0b01)
        async with serving(service_of(deployment.controller), f"unix:{tmp_path}/socket", None) as address:
            monkeypatch.setenv("NETFOLD_CONTROLLER", address)
            run = CliRunner().invoke
            shown = await asyncio.to_thread(run, job_app, ["slot", "job", "s1", "3"])
            assert shown.exit_code == 0, shown.output
            assert "(epoch 1, round 5)" in shown.output
            assert "contributions: h1\n  missing: h2\n" in shown.output
            wrong = await asyncio.to_thread(run, job_app, ["slot", "job", "leaf9", "3"])
            assert (wrong.exit_code, "it does at s1 (tree" in wrong.output) == (2, True)
            packets = await asyncio.to_thread(run, job_app, ["show", "job", "--packets"])
            record = deployment.job("job")
            tree = record.placement.trees[0]
            assert f"UDP port {record.udp_port} (source and destination), epoch 1, 32 lanes" in packets.output
            root = deployment.controller.state.config.addresses.ip("s1")
            assert f"tree {tree.tree}: to {root}, {tree.slots} slots, children: h1 " in packets.output


EPOCH = 3
FULL = 0b11
TREE = Tree(
    "leaf1",
    1.0,
    (
        Edge("h5", "leaf2", ("h5", "leaf2")),
        Edge("h6", "leaf2", ("h6", "leaf2")),
        Edge("h1", "leaf1", ("h1", "leaf1")),
        Edge("leaf2", "leaf1", ("leaf2", "spine1", "leaf1")),
    ),
    (),
)


class Slots:
    """The contributors and the round of slots, by switch and offset."""

    def __init__(self, contents: Mapping[str, Mapping[int, tuple[int, int]]]) -> None:
        self._contents = contents

    async def manage(self, switch: str, kind: Kind, slot: int, pipe: int | None = None) -> SlotView:
        bitmap, round_ = self._contents[switch].get(slot, (FULL, 0))
        return SlotView(1, 7, slot, 0, IPv4Address(0), EPOCH, round_, bitmap, False, False, 0, ())


def read(
    contents: Mapping[str, Mapping[int, tuple[int, int]]], awaited: Mapping[str, int]
) -> dict[str, OpenSlots]:
    """The nodes, where each worker waits for the slot of `awaited`."""
    reports = {h: Progress(trees=(TreeProgress(7, open_slot=1 + o),)) for h, o in awaited.items()}
    planned = AllocatedTree(tree=7, slots=8, window=4, bases={"leaf2": 0, "leaf1": 0})
    fabric = load_fabric("leaf-spine-2x2")
    slots = cast(SlotAccess, Slots(contents))
    nodes = asyncio.run(read_open_slots(fabric, slots, planned, TREE, EPOCH, reports))
    return {n.switch: n for n in nodes}


def test_a_sum_that_a_switch_has_and_its_parent_lacks_is_lost() -> None:
    nodes = read({"leaf2": {2: (FULL, 5)}, "leaf1": {2: (0b01, 5)}}, {"h1": 2, "h5": 2, "h6": 2})
    assert nodes["leaf1"].lost == {"leaf2": 1}
    assert nodes["leaf1"].paths["leaf2"] == ("leaf2", "spine1", "leaf1")
    assert not nodes["leaf2"].lost


def test_a_switch_that_waits_itself_has_lost_nothing() -> None:
    """Where h5 lacks the sum of slot 1, its window holds back slot 2."""
    nodes = read({"leaf2": {2: (0b10, 5)}, "leaf1": {2: (0b01, 5)}}, {"h1": 2, "h5": 1, "h6": 2})
    assert nodes["leaf1"].missing == {"leaf2": 1}
    assert not nodes["leaf1"].lost
    assert nodes["leaf2"].missing == {"h5": 1}
    assert not nodes["leaf2"].lost
    assert nodes["leaf1"].undelivered == ("h5",)


def test_a_sum_of_an_earlier_round_was_not_sent_for_this_one() -> None:
    nodes = read({"leaf2": {2: (FULL, 4)}, "leaf1": {2: (0b01, 5)}}, {"h1": 2})
    assert not nodes["leaf1"].lost


def test_a_worker_that_waits_for_its_own_contribution_has_lost_it() -> None:
    nodes = read({"leaf2": {2: (0b10, 5)}, "leaf1": {2: (0b01, 5)}}, {"h5": 2, "h6": 2})
    assert nodes["leaf2"].lost == {"h5": 1}
