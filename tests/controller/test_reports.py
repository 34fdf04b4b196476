# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reports of workers and ports as operators see them: by tree, link loads, `job explain`, `netfold plan --live`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from netfold.controller.lifecycle.member_status import MemberStatus, Progress, TreeProgress
from netfold.controller.operator.top import Snapshot, document, screen
from netfold.controller.service.metrics import ControllerCollector
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.generators import single_switch
from tests.controller.deployment import MemberStream, asked, deployed

SPEC = "name: job\nworkers: 2\nscheme: switchml\nrate: 25\n"
LINK = ("h1", "s1")


def test_lately_is_what_came_between_two_reports():
    member_status = MemberStatus()

    def said(*trees: TreeProgress) -> tuple[TreeProgress, ...]:
        member_status.set_report("job", "h1", Progress(trees=trees))
        return member_status.progress("job", "h1").lately

    assert said(TreeProgress(1, 100, 10)) == (TreeProgress(1, 100, 10),)
    assert said(TreeProgress(1, 300, 110, 4)) == (TreeProgress(1, 200, 100, 4),)
    assert said(TreeProgress(1, 300, 110, 4)) == (TreeProgress(1, 200, 100, 4),), "said again: nothing new"
    assert said(TreeProgress(2, 50)) == (TreeProgress(2, 50),), "another epoch has other trees"
    assert said(TreeProgress(2, 20, 5)) == (TreeProgress(2, 20, 5),), "a worker that started again"


async def test_operators_see_foreign_load_and_how_trees_do(tmp_path: Path):
    async with deployed(single_switch(2), tmp_path) as deployment, asked(deployment) as stub:
        controller = deployment.controller
        await deployment.settled()
        await deployment.run(SPEC)
        rate = controller.state.fabric.link(*LINK).rate
        member = MemberStream(stub, "job", "h1")
        trees = [pb.TreeReport(tree=9, results=100, marked=40, retransmits=2, rtt_ms=3.5, min_rtt_ms=1.0)]
        await member.say(report=pb.Report(chunks=100, trees=trees))
        await member.hear()
        now = asyncio.get_running_loop().time()
        row = controller.switches.loads._row[LINK]
        controller.switches.loads._loads[row] = 0.95 * rate, 0.01 * rate
        controller.switches.loads._at[row] = now + 1000
        controller.switches.loads._now = lambda: now + 1000

        why = " ".join((await stub.ExplainJob(pb.JobName(name="job"))).steps)
        assert "Cross traffic on 1 of its links" in why
        assert "Tree 9 at h1: 40% of results marked, 2.0% retransmitted, SRTT 3.5 ms" in why

        status = await stub.GetStatus(pb.StatusRequest())
        [load] = [k for k in status.links if (k.sender, k.receiver) == LINK]
        assert load.cross_traffic == pytest.approx(0.95 * rate)
        jobs = tuple((await stub.ListJobs(pb.ListJobsRequest())).jobs)
        assert jobs[0].members[0].report.trees[0].marked == 40
        shown = Snapshot(1.0, jobs, status)
        assert document(None, shown)["links"][0]["cross_traffic"] == pytest.approx(0.95 * rate)
        assert screen(None, shown)

        samples = {
            (s.name, *s.labels.values()): s.value
            for family in ControllerCollector(
                controller.state, controller.switches, controller.planning
            ).collect()
            for s in family.samples
        }
        unit = controller.state.fabric.unit.bits_per_second
        assert samples["netfold_link_cross_traffic_bits_per_second", *LINK] == pytest.approx(
            0.95 * rate * unit
        )
        assert samples["netfold_tree_ecn_marked_ratio", "job", "h1", "9"] == pytest.approx(0.4)

        again = json.loads((await stub.PlanJob(pb.PlanJobRequest(spec_yaml=SPEC))).plan_json)
        assert again["rate"] == pytest.approx(0.1 * rate), "its own load does not count"
