# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A reader of any picture has whole texts, one legend, named axes, directions, and the loads that it speaks of."""

from __future__ import annotations

import math
import random
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import same_color

from examples.ddp import step_plot
from netfold.controller.drawing.fabric_picture import MeasuredLoads, fabric_plot
from netfold.controller.drawing.palette import LOAD_COLORS, Theme
from netfold.controller.drawing.plot import PictureFormatError, Plot, drawn, render, save
from netfold.controller.jobs.lookup import default_job
from netfold.controller.planning.plan import JobSpec, Loads, Plan
from netfold.controller.planning.planner import make_plan
from netfold.evaluation.core.experiment import Experiment
from netfold.evaluation.papers.netreduce import NetReduce
from netfold.evaluation.testbed.arrivals import ArrivalRow, Arrivals
from netfold.evaluation.testbed.balance import Balance, BalanceRow
from netfold.evaluation.testbed.fairness.experiment import Fairness
from netfold.evaluation.testbed.fairness.shares import SharesRow
from netfold.evaluation.testbed.fairness.short_flows import ShortFlowsRow
from netfold.evaluation.testbed.quorum import Quorum, QuorumRow
from netfold.evaluation.testbed.reroute import MODES, Rerouting
from netfold.evaluation.testbed.reroute_row import RerouteRow
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import fat_tree, leaf_spine
from netfold.topologies.spec import load_fabric
from tests.drawing.readability import faults_of
from tests.house.imports import REPOSITORY

SPECS = sorted(path.stem for path in (REPOSITORY / "topologies/specs").glob("*.yaml"))
LARGE = {
    "leaf-spine-8x4": leaf_spine(8, 4, 8),
    "leaf-spine-40x12": leaf_spine(40, 12, 8),
    "fat-tree-6": fat_tree(6),
}
LARGE["leaf-spine-2x2, long names"] = leaf_spine(2, 2, 12)


def _planned(fabric: Fabric, name: str | None = None) -> Plan:
    if name is None:
        workers = tuple(host.name for host in fabric.hosts if not host.parameter_server)[:160]
        return make_plan(fabric, JobSpec("training", workers, scheme="panama"))
    return make_plan(fabric, default_job(fabric).spec)


@pytest.mark.parametrize("theme", [Theme.LIGHT, pytest.param(Theme.DARK, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*SPECS, *LARGE])
def test_a_plan_on_every_fabric_is_readable(name: str, theme: Theme):
    fabric = LARGE[name] if name in LARGE else load_fabric(name)
    plan = _planned(fabric, None if name in LARGE else name)
    plot = fabric_plot(fabric, plan)
    assert faults_of(plot, theme, needs_axis_names=False) == []
    assert plot.size[0] <= 17, "a wider one has unreadable letters in a page's width"


def test_a_measured_picture_shows_the_loads_of_its_interval_in_both_directions():
    fabric = load_fabric("leaf-spine-2x2")
    plan = _planned(fabric, "leaf-spine-2x2")
    rate = fabric.link("leaf1", "spine1").rate
    measured = MeasuredLoads(Loads(links={("leaf1", "spine1"): 0.92 * rate}), "mean of 3 s")
    with drawn(fabric_plot(fabric, plan, measured)) as figure:
        texts = [text.get_text() for text in figure.axes[0].texts]
        lines = [line for line in figure.axes[0].lines if same_color(line.get_color(), LOAD_COLORS[5].light)]
        idle = [line for line in figure.axes[0].lines if same_color(line.get_color(), LOAD_COLORS[0].light)]
    assert f"Fullest link: leaf1 to spine1, 92 % of {rate:g} Mbit/s" in texts
    assert any("Loads: mean of 3 s" in text for text in texts)
    assert len(lines) == 1, "the other direction of the link carries nothing"
    assert len(idle) == 2 * len(fabric.links) - 1


def test_a_job_named_as_its_fabric_is_named_once():
    fabric = load_fabric("grid-fig1")
    with drawn(fabric_plot(fabric, _planned(fabric, "grid-fig1"))) as figure:
        assert "grid-fig1" in [text.get_text() for text in figure.axes[0].texts]


def _plots(name: str, experiment: Experiment[Any], rows: list[Any]) -> Iterator[tuple[str, Plot]]:
    for plot in experiment.plots(rows):
        yield f"{name} {plot.suffix}".strip(), plot


def _series(seeded: random.Random, count: int) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(seeded.uniform(0.1, 0.9) for _ in range(count)) for _ in range(60))


def _timeline(seeded: random.Random) -> list[tuple[float, float]]:
    return [(0.2 * n - 3, seeded.uniform(150, 300)) for n in range(80)]


def _experiments() -> Iterator[tuple[str, Plot]]:
    seeded = random.Random(1)
    sizes, speeds = (4_000_000, 16_000_000, 64_000_000, 400_000_000), (1, 0.5, 0.25, 0.1)
    for name, some in (
        ("balance", list(product(sizes, speeds))),
        ("quick balance", [(sizes[1], 1), (sizes[1], 0.5)]),
    ):
        rows = [BalanceRow(n, s, 1.02, 1.0, 1 / s, (s / (3 + s), 0.3)) for n, s in some]
        yield from _plots(name, Balance(), rows)
    arrived = [
        ArrivalRow(spread, call, 4_000_000, 100.0, 8, 8000.0, 90.0, 0.004, 0.34, 0.341, 0.99)
        for spread, call in product((0.0, 50.0, 100.0, 200.0, 500.0), (1, 3))
    ]
    yield from _plots("arrivals", Arrivals(), arrived)
    yield from _plots("arrivals at once", Arrivals(), arrived[:1])
    times = tuple(0.05 * n for n in range(60))
    beside = [*product(("reno", "cubic", "dctcp", "cubic-ecn"), (1,), (1, 2, 4)), ("cubic", 2, 0)]
    shares = [
        SharesRow(
            link,
            tcp,
            jobs,
            flows,
            (1 / (jobs + flows),) * (jobs + flows),
            times,
            _series(seeded, jobs + flows),
        )
        for link, (tcp, jobs, flows) in product(("100 Mbit/s, 2 ms", "10 Gbit/s, 20 us"), beside)
    ]
    short = [
        ShortFlowsRow(
            link, tcp, beside, 34, 3 * (beside == "fixed"), 5.0, math.inf if beside == "fixed" else 9.11
        )
        for link in ("100 Mbit/s, 2 ms", "10 Gbit/s, 20 us")
        for tcp in ("cubic", "cubic-ecn", "dctcp")
        for beside in ("nothing", "panama", "fixed")
    ]
    yield from _plots("fairness", Fairness(), [*shares, *short])
    slow = [
        QuorumRow(d, q, 100, 12.0 if q else 12.0 + d, 90, 0) for d in (0, 20, 100, 250, 500) for q in (0, 3)
    ]
    yield from _plots("quorum", Quorum(), slow)
    moved = [
        RerouteRow(load, mode, jobs, f"{mode}-1", 200, 300, 200, 1, 2, 1, 2, [1.0], 0, _timeline(seeded))
        for load, jobs, mode in product((0.6, 0.7, 0.8), (1, 2), MODES)
    ]
    yield from _plots("reroute", Rerouting(), moved)
    yield from ((f"netreduce {plot.suffix}", plot) for plot in NetReduce(quick=True).plots([]))
    fixed = {"parameters": 109_386, "ranks": 8, "link_mbps": 50.0}
    steps: dict[str, Any] = {
        name: {"step_ms": [seeded.gauss(ms, 5) for _ in range(120)], **fixed}
        for name, ms in (("netfold", 40), ("gloo", 85))
    }
    yield "train", step_plot(steps)


PLOTS = dict(_experiments())


@pytest.mark.slow
@pytest.mark.parametrize("name", PLOTS)
def test_every_chart_is_readable(name: str):
    assert faults_of(PLOTS[name]) == []


def test_an_svg_follows_the_readers_screen_and_is_the_same_each_time():
    plot = fabric_plot(fabric := load_fabric("single"), _planned(fabric, "single"))
    svg = render(plot, "svg")
    assert svg == render(plot, "svg")
    texts = {text.text for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}
    assert texts >= {"h1", "s1"}, "letters are no outlines"
    assert b"prefers-color-scheme: dark" in svg
    for light, dark in (LOAD_COLORS[5], LOAD_COLORS[0]):
        assert f'[style*="stroke: {light}"]{{stroke:{dark} !important}}'.encode() in svg
    assert b"prefers-color-scheme" not in render(plot, "svg", Theme.DARK)


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_suffix_is_the_format(tmp_path: Path, suffix: str, start: bytes):
    save(PLOTS["train"], tmp_path / "deep" / f"x.{suffix.upper()}")
    assert (tmp_path / "deep" / f"x.{suffix.upper()}").read_bytes().startswith(start)


def test_another_suffix_is_refused_with_those_that_serve(tmp_path: Path):
    with pytest.raises(PictureFormatError, match=r"suffix '.exe'; expected one of .png, .svg, .pdf"):
        save(PLOTS["train"], tmp_path / "x.exe")
    assert list(tmp_path.iterdir()) == []
