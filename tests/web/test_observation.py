# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Records of the controller's recorder: jobs, switches, members, links and events, as they are."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from netfold.controller.jobs.records import JobState, Member
from netfold.controller.lifecycle.member_status import MemberStatus, OpenStream, Progress, TreeProgress
from netfold.controller.observation.member_rows import MEMBERS_PER_LOOK, MemberRows, RecentGoodput, straggler
from netfold.controller.recording.lines import State, merge
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.generators import single_switch
from tests.controller.deployment import MemberStream, asked, deployed

SPEC = "name: job\nworkers: 2\nscheme: switchml\nrate: 25\n"


class Reader:
    """Follows the controller's recording by its service."""

    def __init__(self, stub: Any) -> None:
        self._call = stub.WatchRecording(pb.WatchRecordingRequest())
        self.state: State = {}
        self.events: list[dict[str, Any]] = []
        self.fabric: dict[str, Any] = {}

    async def until(self, condition: Any, what: str) -> None:
        async with asyncio.timeout(60):
            while not condition():
                message = await self._call.read()
                assert isinstance(message, pb.RecordingLines), f"the stream ended before {what}"
                for line in message.lines:
                    self._take(json.loads(line))

    def _take(self, row: dict[str, Any]) -> None:
        if row["kind"] == "fabric":
            self.fabric = row
        elif row["kind"] == "event":
            self.events.append(row)
        else:
            self.state = {} if row["kind"] == "state" else self.state
            merge(self.state, row["state"])

    def row(self, section: str, key: str) -> dict[str, Any]:
        return self.state.get(section, {}).get(key, {})


async def test_a_recording_tells_a_jobs_way(tmp_path: Path):
    async with deployed(single_switch(2), tmp_path) as deployment, asked(deployment) as stub:
        reader = Reader(stub)
        await reader.until(lambda: reader.row("switches", "s1").get("ready"), "the switch is ready")
        assert [s["name"] for s in reader.fabric["switches"]] == ["s1"]
        await deployment.controller.requests.submit(SPEC, queue=False)
        await reader.until(lambda: reader.row("jobs", "job").get("state") == "running", "the job runs")
        job = reader.row("jobs", "job")
        assert (job["epoch"], job["scheme"], job["workers"]) == (1, "switchml", ["h1", "h2"])
        tree = job["trees"][0]
        assert {e["child"] for e in tree["edges"]} == {"h1", "h2"}
        await reader.until(lambda: reader.row("switches", "s1")["slots_in_use"] == tree["slots"], "slots")

        member = MemberStream(stub, "job", "h1")
        report = pb.TreeReport(
            tree=tree["tree"], results=100, marked=40, retransmits=2, rtt_ms=3.5, window=12
        )
        await member.say(report=pb.Report(chunks=100, retransmits=2, trees=[report]))
        await reader.until(lambda: reader.row("members", "job h1").get("chunks") == 100, "the report")
        row = reader.row("members", "job h1")
        assert row["connected"]
        assert [row["trees"][0][name] for name in ("marked", "retransmitted", "window")] == [
            0.4,
            0.02,
            12,
        ]

        deployment.controller.requests.cancel("job")
        await reader.until(lambda: reader.row("jobs", "job").get("state") == "canceled", "the end")
        assert reader.row("jobs", "job")["trees"] == []
        assert "job h1" not in reader.state["members"]
        told = [(e["event"], e.get("job")) for e in reader.events]
        assert ("job_running", "job") in told
        assert any("canceled by an operator" in e["text"] for e in reader.events)


async def test_a_recording_has_loads_of_jobs_and_of_cross_traffic_apart(tmp_path: Path):
    async with deployed(single_switch(2), tmp_path) as deployment, asked(deployment) as stub:
        controller = deployment.controller
        await deployment.settled()
        reader = Reader(stub)
        row = controller.switches.loads._row["h1", "s1"]
        rate = controller.state.fabric.link("h1", "s1").rate
        controller.switches.loads._loads[row] = 0.95 * rate, 0.01 * rate
        controller.switches.loads._at[row] = asyncio.get_running_loop().time() + 1e6
        controller.switches.loads._revision += 1
        controller.switches.loads._revised[row] = controller.switches.loads._revision
        key, expected = "h1->s1", pytest.approx([0.01 * rate, 0.95 * rate])
        await reader.until(lambda: reader.state.get("links", {}).get(key) == expected, "the load")
        controller.switches.loads._at[row] = -1e9
        await reader.until(lambda: key not in reader.state.get("links", {}), "an unknown load")


async def test_a_lost_switch_is_in_the_state_and_in_the_events(tmp_path: Path):
    async with deployed(single_switch(2), tmp_path) as deployment, asked(deployment) as stub:
        reader = Reader(stub)
        await reader.until(lambda: reader.row("switches", "s1").get("ready"), "the switch is ready")
        await deployment.switches["s1"].stop()
        await reader.until(lambda: reader.row("switches", "s1").get("ready") is False, "it is lost")
        assert reader.row("switches", "s1")["error"]


def progress(*trips_ms: float) -> Progress:
    return Progress(lately=tuple(TreeProgress(n, 100, rtt_ms=trip) for n, trip in enumerate(trips_ms)))


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        ({"h1": progress(1.0), "h2": progress(9.0), "h3": progress(10.0)}, "h1"),
        ({"h1": progress(8.0), "h2": progress(9.0), "h3": progress(10.0)}, None),
        ({"h1": progress(1.0), "h2": progress(9.0)}, None),
        ({"h1": progress(1.0, 1.2), "h2": progress(9.0, 8.0), "h3": progress(7.0, 10.0)}, "h1"),
        ({"h1": Progress(), "h2": progress(9.0), "h3": progress(10.0), "h4": progress(9.0)}, None),
        ({}, None),
    ],
)
def test_the_straggler_is_the_one_that_does_not_wait(workers: dict[str, Progress], expected: str | None):
    assert straggler(workers) == expected


def test_goodput_is_of_the_last_seconds_and_falls_to_zero():
    goodput = RecentGoodput(lanes=25_000)  # 0.8 Mbit a chunk
    holder = ("job", "h1")
    rates = [goodput.mbps(holder, 10 * second, float(second)) for second in range(6)]
    assert rates[0] == 0.0
    assert rates[1:] == pytest.approx([8.0] * 5)
    assert goodput.mbps(holder, 50, 6.0) == pytest.approx(8.0), "a report may be late"
    assert goodput.mbps(holder, 50, 9.0) < 8.0 / 1.5
    assert goodput.mbps(holder, 50, 20.0) == 0.0
    assert goodput.mbps(holder, 1, 21.0) == 0.0, "a restarted worker counts from 0"


LOOKS = 4
HOSTS = [f"h{n}" for n in range((LOOKS - 1) * MEMBERS_PER_LOOK + 1)]


def job(hosts, state=JobState.RUNNING):
    return SimpleNamespace(members=tuple(Member(host=h) for h in hosts), state=state)


def looked(rows: MemberRows, jobs, looks: int, at: float = 0.0):
    """Returns the rows after `looks` looks; all but the last are part of a round."""
    found = {}
    for n in range(looks):
        seen = rows.look(jobs, at + n)
        assert len([row for row in seen.values() if row is not None]) <= MEMBERS_PER_LOOK
        assert rows.is_round_complete == (n == looks - 1)
        found |= seen
    return found


def test_every_member_has_its_turn_and_its_row_only_if_it_changed():
    status = MemberStatus()
    rows, jobs = MemberRows(status, lanes=64), {"job": job(HOSTS)}
    assert looked(rows, jobs, LOOKS).keys() == {f"job {h}" for h in HOSTS}
    assert looked(rows, jobs, LOOKS) == {}
    status.set_report("job", HOSTS[0], Progress(chunks=7))
    with status.connected(OpenStream("job", HOSTS[-1])):
        changed = looked(rows, jobs, LOOKS)
    assert changed.keys() == {f"job {HOSTS[0]}", f"job {HOSTS[-1]}"}
    assert changed[f"job {HOSTS[0]}"]["chunks"] == 7
    assert changed[f"job {HOSTS[-1]}"]["connected"]


def test_members_of_a_job_that_ended_go_at_once():
    rows = MemberRows(MemberStatus(), lanes=64)
    looked(rows, {"job": job(HOSTS), "other": job(HOSTS[:1])}, LOOKS)
    ended = rows.look({"job": job(HOSTS, JobState.DONE), "other": job(HOSTS[:1])}, 9.0)
    assert ended == {f"job {h}": None for h in HOSTS}
    assert rows.is_round_complete


def test_goodput_is_right_although_looks_at_a_member_are_seconds_apart():
    """A member of 1,024 reports 100 chunks a second; it is looked at every 4 s."""
    status = MemberStatus()
    rows, jobs = MemberRows(status, lanes=100), {"job": job(HOSTS)}
    for second in range(0, 16, LOOKS):
        status.set_report("job", HOSTS[0], Progress(chunks=100 * second))
        seen = looked(rows, jobs, LOOKS, at=second)
    assert seen[f"job {HOSTS[0]}"]["goodput_mbps"] == 0.32
