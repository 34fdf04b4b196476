# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings without a controller: of the planner and of the simulator."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from netfold.controller.operator.plan_command import app as plan
from netfold.controller.recording.lines import State, merge
from netfold.controller.recording.recording_file import read_recording
from netfold.simulator.command.cli import app as simulate
from netfold.simulator.command.simulation_recording import STEPS, recording_of
from netfold.simulator.command.simulation_spec import (
    Background,
    Level,
    SimulationSpec,
    Training,
    simulated,
)
from netfold.topologies.spec import load_fabric

JOB = "name: train\nworkers: 4\nscheme: panama\nelements: 1000000\n"


def states(lines: list[str]) -> list[tuple[float, dict[str, Any]]]:
    """Every time, and the state then."""
    state: State = {}
    found = []
    for row in map(json.loads, lines):
        if "state" in row:
            merge(state, row["state"])
            found.append((row["at"], {section: dict(rows) for section, rows in state.items()}))
    return found


def test_a_comparison_of_plans_is_a_recording(tmp_path: Path):
    file = tmp_path / "plans.jsonl"
    done = CliRunner().invoke(plan, ["leaf-spine-2x2", "--compare", "--record", str(file)])
    assert done.exit_code == 0, done.output
    [(_, state)] = states(list(read_recording(file)))
    schemes = state["plans"]
    assert {"switchml", "panama", "grid"} <= schemes.keys()
    for row in schemes.values():
        assert "error" in row or row["trees"]
    assert schemes["switchml"]["trees"][0]["edges"]


def test_a_plan_that_cannot_be_written_is_refused(tmp_path: Path):
    done = CliRunner().invoke(plan, ["leaf-spine-2x2", "--record", str(tmp_path / "no" / "plans.jsonl")])
    assert done.exit_code == 2
    assert "--record" in done.output


@pytest.mark.parametrize("scheme", ["panama", "ring"])
def test_a_simulations_loads_over_time_are_the_bytes_that_its_links_carried(scheme: str):
    fabric = load_fabric("leaf-spine-2x2")
    training, flows = Training(iterations=3), Background(load=0.1)
    spec = SimulationSpec(fabric, (JOB,), scheme, Level.FLOW, 1, training, flows, None)
    done = simulated(spec)
    found = states(recording_of([(scheme, done)]))
    assert len(found) == STEPS + 1
    carried: dict[str, float] = defaultdict(float)
    for (at, state), (after, _) in itertools.pairwise(found):
        for link, (jobs, cross) in state["links"].items():
            carried[link] += (jobs + cross) * (after - at) * fabric.unit.bits_per_second / 8
    flows_done = list(zip(done.scenario.flows, done.result.completions, strict=True))
    assert any(c is not None for _, c in flows_done)
    incomplete = sum(flow.bytes for flow, c in flows_done if c is None)  # their times are not known
    for (a, b), result in done.result.links.items():
        rate = fabric.link(a, b).rate * fabric.unit.bits_per_second / 8
        slack = 0.01 * rate * done.result.end + 1.1 * incomplete
        assert carried[f"{a}->{b}"] == pytest.approx(result.bytes, abs=slack), (a, b)


def test_netfold_simulate_writes_a_recording_with_the_plans_of_all_schemes(tmp_path: Path):
    job, file = tmp_path / "job.yaml", tmp_path / "simulation.jsonl"
    job.write_text(JOB)
    options = ["-s", "panama", "-s", "switchml", "--iterations", "2", "--no-cache", "--record", str(file)]
    done = CliRunner().invoke(simulate, ["leaf-spine-2x2", str(job), *options])
    assert done.exit_code == 0, done.output
    lines = list(read_recording(file))
    assert json.loads(lines[0])["source"] == "simulator"
    _, state = states(lines)[-1]
    assert state["plans"].keys() == {"panama", "switchml"}
    assert state["jobs"]["train"]["scheme"] == "panama"
    events = [row["text"] for row in map(json.loads, lines) if row["kind"] == "event"]
    assert "2 iterations are complete" in events
