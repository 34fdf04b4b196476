# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tests the views of a running controller: metrics, the dashboard, `netfold controller top`."""

from __future__ import annotations

import asyncio
import io
import json
import re
import shutil
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest
import yaml
from prometheus_client.core import Metric
from rich.console import Console, Group

from netfold.controller.health.counters import Counters
from netfold.controller.jobs.records import JobState
from netfold.controller.operator.job_commands import jobs_table
from netfold.controller.operator.job_text import MAX_LINES, job_lines
from netfold.controller.operator.top import Snapshot, document, screen, share_lines
from netfold.controller.service.metrics import ControllerCollector
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.controller.switches.switch_health import Health
from netfold.controller.switches.tables import verdict_cell
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.wire import Verdict
from netfold.topologies.generators import single_switch
from tests.controller.deployment import Deployment, MemberStream, served

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "reference" / "grafana" / "netfold.json"
ALERTS = DASHBOARD.with_name("alerts.yaml")
SPEC = "name: job\nworkers: 2\nscheme: switchml\nrate: 25\n"


def _samples(deployment: Deployment) -> dict[tuple[str, tuple[str, ...]], float]:
    return {(s.name, tuple(s.labels.values())): s.value for f in _families(deployment) for s in f.samples}


def _families(deployment: Deployment) -> list[Metric]:
    controller = deployment.controller
    return list(ControllerCollector(controller.state, controller.switches, controller.planning).collect())


@asynccontextmanager
async def _running(tmp_path):
    async with served(single_switch(2), tmp_path) as (deployment, stub):
        tree = (await deployment.run(SPEC)).placement.trees[0].tree
        await deployment.until(
            lambda: ("s1", tree) in deployment.controller.switches.counters.trees, "counted"
        )
        yield deployment, stub, tree


async def test_packets_are_counted_for_their_job_also_when_the_switch_starts_from_zero(tmp_path):
    async with _running(tmp_path) as (deployment, _, tree):
        counters = deployment.controller.switches.counters
        accumulated = verdict_cell(tree, Verdict.ACCUMULATED)
        switch = deployment.switches["s1"].state.counters
        for value in (5, 12, 3):  # the last after a restart
            switch[accumulated] = value
            await counters.refresh()
        assert _samples(deployment)["netfold_packets_total", ("s1", "job", "accumulated")] == 15


class _GoneSession:
    async def read_counters(self, cells):
        raise SwitchUnreachableError("gone, and its health does not say so yet")


class _GoneFleet:
    sessions: ClassVar = {"s1": _GoneSession()}

    def health(self, switch: str) -> Health:
        return Health(ready=True)


async def test_a_switch_that_refuses_at_once_starves_no_other_task():
    counters = Counters(_GoneFleet(), list, asyncio.Event().wait, 1.0)
    reading = asyncio.create_task(counters.run())
    for _ in range(100):
        await asyncio.sleep(0)
    assert not reading.done()
    reading.cancel()


async def test_metrics_say_what_jobs_and_members_do(tmp_path):
    async with _running(tmp_path) as (deployment, stub, _):
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
        deployment.controller.requests.cancel("job")
        assert ("netfold_chunks_total", ("job", "h1")) not in _samples(deployment)


async def test_the_dashboard_shows_every_metric_and_no_other(tmp_path):
    """Also the labels that its queries group by, and its legends name."""
    async with _running(tmp_path) as (deployment, stub, tree):
        member = MemberStream(stub, "job", "h1")
        await member.say(report=pb.Report(chunks=1, trees=[pb.TreeReport(tree=tree, results=9)]))
        await member.hear()
        await deployment.until(deployment.controller.switches.loads.all, "link loads")
        families = _families(deployment)
        labels = {s.name: set(s.labels) for family in families for s in family.samples}
        assert all(family.samples for family in families)
        shown: set[str] = set()
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            for target in panel.get("targets", ()):
                query, legend = target["expr"], target["legendFormat"]
                names = set(re.findall(r"netfold_\w+", query))
                assert names <= set(labels), panel["title"]
                groups = [set(re.split(r", *", g)) for g in re.findall(r"by \(([^)]*)\)", query)]
                if panel["type"] == "nodeGraph":
                    made = made_labels(query)
                    assert set().union(*groups) <= made.union(*(labels[name] for name in names))
                    assert NODE_GRAPH_FIELDS[target["refId"]] <= made
                    assert (target["format"], target["instant"]) == ("table", True)
                    shown |= names
                    continue
                known = set.intersection(*(labels[name] for name in names), *groups)
                used = set(re.findall(r"{{(\w+)}}", legend)).union(*groups)
                assert used <= known, panel["title"]
                shown |= names
        assert set(labels) - shown == set(), "exported, and on no panel"


async def test_alerts_are_on_metrics_that_there_are(tmp_path):
    """So are the labels that they select, group by and show."""
    async with _running(tmp_path) as (deployment, stub, _):
        member = MemberStream(stub, "job", "h1")
        await member.say(report=pb.Report(chunks=1))
        await member.hear()
        samples = [s for family in _families(deployment) for s in family.samples]
        labels = {s.name: set(s.labels) for s in samples}
        (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
        for rule in group["rules"]:
            query, place = rule["expr"], rule["alert"]
            names = set(re.findall(r"netfold_\w+", query))
            assert names, place
            assert names <= set(labels), place
            grouped = [set(re.split(r", *", g)) for g in re.findall(r"by \(([^)]*)\)", query)]
            known = set.intersection(*(labels[name] for name in names), *grouped)
            assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= known, place
            for label, value in re.findall(r"(\w+)=\"(\w+)\"", query):
                assert any(s.labels.get(label) == value for s in samples if s.name in names), place
                assert label != "state" or not JobState(value).is_terminal, (
                    "jobs that have ended have no metrics"
                )


@pytest.mark.skipif(shutil.which("promtool") is None, reason="SKIPPED: promtool is not on PATH")
def test_prometheus_takes_the_alerts():
    subprocess.run(["promtool", "check", "rules", ALERTS], check=True, timeout=60)


NODE_GRAPH_FIELDS = {"nodes": {"id", "title", "mainstat"}, "edges": {"id", "source", "target", "mainstat"}}
"""Fields that Grafana's node graph reads. It ignores renamed fields (grafana issue 54844), so all are labels."""


def made_labels(query: str) -> set[str]:
    """The labels that `label_replace`, `label_join` and `count_values` of a query make: each one's first text that
    follows its argument in brackets."""
    made, calls = set(), []
    for token in re.finditer(r'(\w*)\(|\)|"((?:[^"\\]|\\.)*)"', query):
        if token[0].endswith("("):
            calls.append(token[1])
        elif token[0] == ")":
            calls.pop()
        elif (calls and calls[-1] in ("label_replace", "label_join")) or query[: token.start()].endswith(
            ") ("
        ):
            made.add(token[2])
            calls[-1] = ""
    assert calls == [], "brackets"
    return made


def shown(view: Group, width: int) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(view)
    return console.export_text()


def test_the_list_of_jobs_has_one_line_a_job_in_a_terminal_of_80_columns():
    plan = json.dumps({"rate": 33.3333, "unit": "Mbit/s", "algorithm": "hierarchical"})
    reason = "waits: link h1-leaf1 has 12.5 of 100 Mbit/s left, and job 'training-7' uses 87.5; wait for it"
    jobs = [
        pb.Job(name="training-7", state=pb.RUNNING, epoch=4095, plan_json=plan),
        pb.Job(name="training-of-july", state=pb.QUEUED, reason=reason),
    ]
    jobs += [pb.Job(name=f"job{n}", state=pb.FAILED, epoch=n, reason=reason) for n in range(5)]
    console = Console(file=io.StringIO(), width=80)
    console.print(jobs_table(jobs))
    _, *rows = console.file.getvalue().splitlines()
    assert [row.split()[0] for row in rows] == [j.name for j in jobs]
    assert all("waits:" in row for row in rows[1:]), rows


def test_top_fits_a_terminal_of_80_by_24():
    """With more jobs, switches, trees and links than lines: the fullest link is shown, and how many rows are not."""
    plan = {"algorithm": "panama", "rate": 100.0, "unit": "Mbit/s", "loads": {"links": {}}}
    jobs = tuple(pb.Job(name=f"job-{i}", state=pb.RUNNING, plan_json=json.dumps(plan)) for i in range(9))
    status = pb.Status(
        primary=True,
        switches=[pb.SwitchStatus(name=f"switch-{i}", ready=i != 7, slots=4096) for i in range(20)],
        trees=[pb.TreeCounters(switch="leaf1", job="job-1", tree=i, packets={"accumulated": 9}) for i in range(30)],
        links=[
            pb.LinkLoad(sender=f"leaf{i}", receiver="spine1", capacity=100, cross_traffic=i, jobs=20)
            for i in range(60)
        ],
    )  # fmt: skip
    lines = shown(screen(None, Snapshot(1.0, jobs, status), 24), 80).splitlines()
    assert len(lines) == 24
    text = "\n".join(lines)
    for part in ("job-0", "leaf59->spine1", "79%", "load", "switch-7", "more", "packets in total"):
        assert part in text, text


@pytest.mark.parametrize(
    ("lines", "wants", "expected"),
    [(10, [2, 3, 4], [2, 3, 4]), (10, [9, 1, 9], [5, 1, 4]), (2, [5, 0, 5], [1, 0, 1]), (0, [3], [1])],
)
def test_lines_are_shared_fairly(lines: int, wants: list[int], expected: list[int]):
    assert share_lines(lines, wants) == expected


async def test_top_shows_rates_since_the_last_look(tmp_path):
    async with _running(tmp_path) as (deployment, stub, tree):

        async def look(at: float) -> Snapshot:
            await deployment.controller.switches.counters.refresh()
            jobs = await stub.ListJobs(pb.ListJobsRequest())
            return Snapshot(at, tuple(jobs.jobs), await stub.GetStatus(pb.StatusRequest()))

        switch = deployment.switches["s1"].state.counters
        switch[verdict_cell(tree, Verdict.ACCUMULATED)] = 10
        before = await look(1.0)
        switch[verdict_cell(tree, Verdict.ACCUMULATED)] = 30
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
        text = shown(screen(before, now), 150)
        assert "packets a second" in text
        assert "accumulated 10" in text
        assert "accumulated 30" not in text
        first = shown(screen(None, now), 150)
        assert "packets in total" in first
        assert "accumulated 30" in first
        assert "25/100" in text
        assert "/4096" in text


def job(count: int, absent: int = 0, left: int = 0) -> pb.Job:
    members = [
        pb.Member(host=f"h{n}", connected=n > absent + left, left=absent < n <= absent + left)
        for n in range(1, count + 1)
    ]
    nodes = {f"leaf{n // 16}": [f"h{n + i}" for i in range(1, 17)] for n in range(0, count, 16)}
    nodes["spine1"] = list(nodes)
    plan = {
        "algorithm": "panama", "rate": 100.0, "unit": "Gbit/s", "bound": None,
        "trees": [{"root": "spine1", "share": 1.0, "nodes": nodes}],
        "installed": [{"tree": 7, "slots": 64, "window": 32}],
    }  # fmt: skip
    return pb.Job(name="large", state=pb.RUNNING, epoch=3, members=members, plan_json=json.dumps(plan))


def test_a_job_of_a_thousand_members_is_a_few_lines_with_the_exceptions_first() -> None:
    lines = list(job_lines(job(1024, absent=2, left=30)))
    text = "\n".join(lines)
    assert len(lines) <= 8
    assert "  2 workers absent: h1, h2" in lines
    assert "  30 workers left: h3, h4, h5, h6, h7, h8, h9, h10 and 22 more" in lines
    assert "  992 workers connected" in lines
    order = [text.index(part) for part in ("absent", "workers left", "992 workers")]
    assert order == sorted(order)
    assert (
        "tree 7: root spine1, share 1.000, 64 slots, window 32: 65 nodes, at most 64 children (spine1)"
        in text
    )


def test_a_small_job_names_each_member_and_node() -> None:
    lines = list(job_lines(job(MAX_LINES - 1, absent=1)))
    assert "  worker h1: absent" in lines
    assert f"  worker h{MAX_LINES - 1}: connected" in lines
