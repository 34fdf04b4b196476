# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Slots that pages read: what the controller answers, and how few reads reach the switches."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from netfold.controller.service.access_control import DEFAULT_CALLS_S
from netfold.controller.web import slot_reads
from netfold.controller.web.slot_reads import ReadPace, SlotRequest
from netfold.controller.web.source import ControllerSource, RecordingReplay
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.connection import Connection
from netfold.topologies.generators import single_switch
from tests.controller.deployment import asked, deployed
from tests.web.test_server import LINES, TIMEOUT_S, Endless, get, served, shown

SPEC = "name: job\nworkers: 2\nscheme: switchml\nrate: 20\n"


async def test_a_page_reads_the_slot_of_a_running_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = ControllerSource(Connection(f"unix:{tmp_path}/s"))
    async with (
        deployed(single_switch(3), tmp_path) as deployment,
        asked(deployment) as stub,
        served(source) as address,
    ):
        await deployment.settled()
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC))
        await deployment.runs("job")
        allocated = deployment.job("job").placement.trees[0]
        register = allocated.bases["s1"] + 3
        deployment.slot = lambda switch, slot: (1 << 20 | 5, 0b10) if slot == register else (0, 0)

        async def read(query: str) -> dict[str, Any]:
            path = f"/slots?job=job&tree={allocated.tree}&{query}"
            answer, body = await asyncio.to_thread(get, address, path)
            assert answer.status == 200, body
            switches = json.loads(body)["switches"]
            assert isinstance(switches, dict)
            return switches

        monkeypatch.setattr(slot_reads, "READ_TIMEOUT_S", TIMEOUT_S)
        held = (await read("slot=3&switch=s1"))["s1"]
        assert (held["epoch"], held["chunk"]) == (1, 5 * allocated.slots + 3)
        assert (held["contributors"], held["missing"]) == (["h2"], ["h1"])
        assert "lanes" not in held, "any user of the machine reads the page"
        request = SlotRequest("job", allocated.tree, 3, ("s1",), shows_values=True)
        known = (await source.read_slots(request))["s1"]
        assert len(known["lanes"]) == slot_reads.SHOWN_LANES
        both = await read("slot=4&switch=s1&switch=s9")
        assert both["s1"]["epoch"] == 0
        assert "s9" in both["s9"]["error"]
        monkeypatch.setattr(slot_reads, "READ_TIMEOUT_S", 0.3)
        deployment.switches["s1"].on_packet_out = lambda packet: None
        assert "no answer within 0.3 s" in (await read("slot=3&switch=s1"))["s1"]["error"]


def test_a_recording_has_no_slots():
    with shown(RecordingReplay(LINES)) as address:
        answer, body = get(address, "/slots?job=train&tree=1&slot=0&switch=s1")
        assert answer.status == 503
        assert "a recording has no slots" in json.loads(body)["error"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("tree=1&slot=0", "0 switches; expected 1 to 32"),
        ("tree=1&slot=0" + "&switch=s" * 33, "33 switches; expected 1 to 32"),
        ("tree=1&slot=65536&switch=s", "slot is '65536'"),
        ("tree=-1&slot=0&switch=s", "tree is '-1'"),
        ("tree=1&switch=s", "slot is ''"),
    ],
)
def test_what_names_no_slots_is_refused(query: str, reason: str):
    with shown(Endless()) as address:
        answer, body = get(address, f"/slots?job=x&{query}")
        assert answer.status == 400
        assert reason in json.loads(body)["error"]


def test_reads_of_all_pages_keep_their_pace(monkeypatch: pytest.MonkeyPatch):
    now = 100.0
    monkeypatch.setattr(slot_reads.time, "monotonic", lambda: now)
    pace = ReadPace()
    starts: list[float] = []
    while (delays := pace.reserve(4)) is not None:
        starts += delays
    gaps = {round(b - a, 9) for a, b in itertools.pairwise(starts)}
    assert gaps == {1 / slot_reads.READS_PER_S}
    assert starts[-1] < slot_reads.MAX_WAIT_S + 4 / slot_reads.READS_PER_S
    now += starts[-1] + 1
    assert pace.reserve(1) == [0.0], "later there is room again"


def test_pages_leave_their_tenant_calls():
    assert slot_reads.READS_PER_S <= DEFAULT_CALLS_S / 2


async def test_pages_beyond_the_pace_are_refused_and_send_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(slot_reads, "READS_PER_S", 0.01)
    path = "/slots?job=job&tree=1&slot=0&switch=s1"
    async with (
        deployed(single_switch(3), tmp_path) as deployment,
        asked(deployment),
        served(ControllerSource(Connection(f"unix:{tmp_path}/s"))) as address,
    ):
        await deployment.settled()
        first, _ = await asyncio.to_thread(get, address, path)
        second, body = await asyncio.to_thread(get, address, path)
    assert (first.status, second.status) == (200, 503)
    assert "try again" in json.loads(body)["error"]
