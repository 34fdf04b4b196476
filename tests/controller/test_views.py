# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What people look at: metrics, the dashboard, `netfold top`."""

from __future__ import annotations

import asyncio
import io
import json
import re
from pathlib import Path
from typing import ClassVar

from rich.console import Console

from netfold.controller.health.counters import Counters
from netfold.controller.operator.top import Snapshot, document, screen
from netfold.controller.service.metrics import ControllerCollector
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.controller.switches.switch_health import Health
from netfold.controller.switches.verdicts import cell
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.wire import Verdict
from netfold.topologies.generators import single_switch
from tests.controller.deployment import Deployment, MemberStream, asked, deployed

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "grafana" / "netfold.json"
SPEC = "name: job\nworkers: 2\nscheme: switchml\nrate: 25\n"


def _samples(deployment: Deployment) -> dict[tuple[str, tuple[str, ...]], float]:
    families = list(ControllerCollector(deployment.controller).collect())
    return {(s.name, tuple(s.labels.values())): s.value for f in families for s in f.samples}


def _run(tmp_path, scenario):
    async def whole():
        async with deployed(single_switch(2), tmp_path) as deployment, asked(deployment) as stub:
            await deployment.settled()
            await deployment.controller.submit(SPEC, queue=False)
            await deployment.runs("job")
            tree = deployment.controller.registry.get("job").placement.trees[0].tree
            await deployment.until(lambda: ("s1", tree) in deployment.controller.counters.trees, "counted")
            await scenario(deployment, stub, tree)

    asyncio.run(whole())


def test_packets_are_counted_for_their_job_also_when_the_switch_starts_from_zero(tmp_path):
    async def scenario(deployment, stub, tree):
        counters = deployment.controller.counters
        accumulated = cell(tree, Verdict.ACCUMULATED)
        switch = deployment.switches["s1"].state.counters
        for value in (5, 12, 3):  # the last after a restart
            switch[accumulated] = value
            await counters.refresh()
        assert _samples(deployment)["netfold_packets_total", ("s1", "job", "accumulated")] == 15

    _run(tmp_path, scenario)


class _GoneSession:
    async def read_counters(self, cells):
        raise SwitchUnreachableError("gone, and its health does not say so yet")


class _GoneFleet:
    sessions: ClassVar = {"s1": _GoneSession()}

    def health(self, switch: str) -> Health:
        return Health(ready=True)


def test_a_switch_that_refuses_at_once_starves_nobody():
    async def scenario():
        counters = Counters(_GoneFleet(), list, asyncio.Event().wait, 1.0)
        reading = asyncio.create_task(counters.run())
        for _ in range(100):
            await asyncio.sleep(0)
        assert not reading.done()
        reading.cancel()

    asyncio.run(scenario())


def test_metrics_say_what_jobs_and_members_do(tmp_path):
    async def scenario(deployment, stub, tree):
        member = MemberStream(stub, "job", "h1")
        await member.say(report=pb.Report(chunks=9, retransmits=2, goodput_mbps=1.5, socket_errors=4))
        await member.hear()
        seen = _samples(deployment)
        assert seen["netfold_job_state", ("job", "running")] == 1
        assert seen["netfold_job_state", ("job", "failed")] == 0
        assert seen["netfold_job_rate_bits_per_second", ("job",)] == 25e6
        assert seen["netfold_retransmissions_total", ("job", "h1")] == 2
        assert seen["netfold_goodput_bits_per_second", ("job", "h1")] == 1.5e6
        assert seen["netfold_socket_errors_total", ("job", "h1")] == 4
        assert seen["netfold_switch_ready", ("s1",)] == 1
        deployment.controller.cancel("job")
        assert ("netfold_chunks_total", ("job", "h1")) not in _samples(deployment)

    _run(tmp_path, scenario)


def test_the_dashboard_asks_for_metrics_that_exist(tmp_path):
    async def scenario(deployment, stub, tree):
        member = MemberStream(stub, "job", "h1")
        await member.say(report=pb.Report(chunks=1))
        await member.hear()
        known = {name for name, _ in _samples(deployment)}
        panels = json.loads(DASHBOARD.read_text())["panels"]
        asked_for = {m for p in panels for t in p["targets"] for m in re.findall(r"netfold_\w+", t["expr"])}
        assert asked_for
        assert asked_for <= known

    _run(tmp_path, scenario)


def test_top_shows_rates_since_the_last_look(tmp_path):
    async def scenario(deployment, stub, tree):
        async def look(at: float) -> Snapshot:
            await deployment.controller.counters.refresh()
            jobs = await stub.ListJobs(pb.ListJobsRequest())
            return Snapshot(at, tuple(jobs.jobs), await stub.GetStatus(pb.StatusRequest()))

        switch = deployment.switches["s1"].state.counters
        switch[cell(tree, Verdict.ACCUMULATED)] = 10
        before = await look(1.0)
        switch[cell(tree, Verdict.ACCUMULATED)] = 30
        now = await look(3.0)
        row = {
            "switch": "s1",
            "job": "job",
            "tree": tree,
            "verdict": "accumulated",
            "packets": 30,
            "per_second": 10.0,
        }
        assert row in document(before, now)["trees"]
        console = Console(width=150, record=True, file=io.StringIO())
        console.print(screen(before, now))
        text = console.export_text()
        assert "accumulated 10" in text
        assert "25/100" in text
        assert "/4096" in text

    _run(tmp_path, scenario)
