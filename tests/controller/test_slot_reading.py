# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A slot of a job and the fields of its packets, as an operator reads them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import grpc
from typer.testing import CliRunner

from netfold.controller.operator.job_commands import app as job_app
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import service_of
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.generators import single_switch
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


async def test_what_is_no_slot_is_refused(tmp_path):
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
