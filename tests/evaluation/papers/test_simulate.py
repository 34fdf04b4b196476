# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold simulate`, as a user calls it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from netfold.cli import build
from netfold.simulator.command.show import spread
from netfold.simulator.command.simulation_spec import read_jobs
from netfold.topologies.spec import load_fabric
from netfold.topologies.yaml_locations import SpecError

TWO = """\
name: a
workers: [h1, h2, h5, h6]
parameter_servers: 0
elements: 250000
---  # beside it
name: b
workers: [h3, h4, h7, h8]
parameter_servers: 0
elements: 500000
rate: 40
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    file = tmp_path / "jobs.yaml"
    file.write_text(TWO)
    return file


def _simulate(file: Path, *more: str) -> Result:
    command = ["simulate", "leaf-spine-2x2", str(file), "--processes", "1", "--no-cache", "--iterations", "3"]
    return CliRunner().invoke(build("simulate"), [*command, *more])


def _json(file: Path, *more: str) -> dict[str, Any]:
    result = _simulate(file, "--json", *more)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def _only(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "one.yaml"
    file.write_text(text)
    return file


def test_jobs_are_planned_one_after_the_other_as_the_controller_does(jobs: Path) -> None:
    (run,) = _json(jobs)["runs"]
    assert [(j["job"], j["workers"], j["bytes"]) for j in run["jobs"]] == [
        ("a", 4, 1_000_000),
        ("b", 4, 2_000_000),
    ]
    assert [j["iterations"] for j in run["jobs"]] == [3, 3]
    assert run["jobs"][1]["planned"]["rate"] <= 40
    assert run["flows"]["started"] == 0
    assert run["slots"].keys() <= {"leaf1", "leaf2", "spine1", "spine2"}
    assert 0 < run["links"][0]["utilization"] <= 1


@pytest.mark.parametrize("level", ["flow", "packet"])
def test_jobs_that_come_one_after_the_other_wait_less_for_each_other(level: str, tmp_path: Path) -> None:
    """On the same hosts. The first comes at once; each seed draws when the second does."""
    jobs = _only(tmp_path, TWO.replace("[h3, h4, h7, h8]", "[h1, h2, h5, h6]"))
    common = ("-s", "ring", "--seeds", "2", "--level", level)
    apart = _json(jobs, *common, "--gap", "30")["runs"]
    assert [run["jobs"][0]["start_s"] for run in apart] == [0, 0]
    assert len({run["jobs"][1]["start_s"] for run in apart} - {0.0}) == 2
    assert all(job["iterations"] == 3 for run in apart for job in run["jobs"])
    together = _json(jobs, *common)["runs"]
    assert [j["start_s"] for j in together[0]["jobs"]] == [0, 0]
    for alone, beside in zip(apart[0]["jobs"], together[0]["jobs"], strict=True):
        assert alone["iteration_s"] * 1.3 < beside["iteration_s"]


def test_a_tree_moves_one_stream_and_a_ring_2_n_minus_1_over_n(tmp_path: Path) -> None:
    file = _only(tmp_path, "name: a\nworkers: [h1, h2, h3, h4]\nparameter_servers: 0\nelements: 2500000\n")
    runs = {r["scheme"]: r for r in _json(file, "-s", "planned", "-s", "ring", "-s", "ideal")["runs"]}
    took = {scheme: r["jobs"][0]["all_reduce_s"] for scheme, r in runs.items()}
    assert took["ideal"] <= took["planned"] == pytest.approx(took["ideal"], rel=0.05)
    assert took["ring"] == pytest.approx(2 * 3 / 4 * took["ideal"], rel=0.05)


def test_the_packet_level_answers_the_same_question(tmp_path: Path) -> None:
    file = _only(tmp_path, "name: a\nworkers: [h1, h2, h5]\nparameter_servers: 0\nelements: 25000\n")
    flow, packet = (
        _json(file, "--level", level, "--load", "0.1", "--flow-sizes", "hadoop")["runs"][0]
        for level in ("flow", "packet")
    )
    assert packet["flows"]["started"] > 0
    assert packet["jobs"][0]["planned"] == flow["jobs"][0]["planned"]
    assert packet["jobs"][0]["iterations"] == 3
    assert packet["slots"]["leaf1"]["peak"] >= 1


def test_background_flows_arrive_until_the_jobs_are_done(jobs: Path) -> None:
    quiet, loud = (
        _json(jobs, *more)["runs"][0] for more in ([], ["--load", "0.3", "--flow-sizes", "hadoop"])
    )
    assert loud["flows"]["done"] > 100
    assert len(loud["flows"]["quantiles_s"]) == 99
    assert [j["iterations"] for j in loud["jobs"]] == [3, 3]
    assert loud["jobs"][0]["iteration_s"] > quiet["jobs"][0]["iteration_s"]


def test_seeds_are_draws_and_the_same_seed_is_the_same_draw(jobs: Path) -> None:
    options = ["--load", "0.2", "--flow-sizes", "hadoop", "--iterations", "1"]
    runs = _json(jobs, *options, "--seed", "5", "--seeds", "2")["runs"]
    assert [r["seed"] for r in runs] == [5, 6]
    assert runs[0]["flows"] != runs[1]["flows"]
    assert _json(jobs, *options, "--seed", "6")["runs"] == runs[1:]


def test_it_can_be_cut_off(jobs: Path) -> None:
    (run,) = _json(jobs, "--seconds", "0.15")["runs"]
    assert run["end"] <= 0.15
    assert run["jobs"][0]["iterations"] < 3


def test_models_bring_their_gradient_and_compute_times(tmp_path: Path) -> None:
    file = _only(tmp_path, "name: a\nworkers: [h1, h2]\nparameter_servers: 0\n")
    (run,) = _json(file, "--model", "googlenet", "--iterations", "1")["runs"]
    assert run["jobs"][0]["bytes"] == 4 * 6_624_904
    assert run["jobs"][0]["iteration_s"] > 0.138  # both passes on an A100


def test_ranks_of_a_host_cost_what_they_do_inside_it(tmp_path: Path) -> None:
    text = "name: a\nworkers: [h1, h2, h5, h6]\nparameter_servers: 0\n"
    one = _json(_only(tmp_path, text))["runs"][0]["jobs"][0]["all_reduce_s"]
    ranks = "ranks: {per_host: 8, intra_gbs: 0.05}\n"
    eight = _json(_only(tmp_path, text + ranks))["runs"][0]["jobs"][0]["all_reduce_s"]
    assert eight - one == pytest.approx(2 * 7 / 8 * 4e6 / 0.05e9, rel=0.05)


def test_tables_csv_and_picture(jobs: Path, tmp_path: Path) -> None:
    picture = tmp_path / "new" / "picture.png"
    said = _simulate(
        jobs, "--plot", str(picture), "-s", "panama", "-s", "ring", "--load", "0.1", "--flow-sizes", "hadoop"
    )
    for text in (
        "Jobs on leaf-spine-2x2, flow level",
        "Background: hadoop",
        "The most loaded links",
        "panama",
        "ring",
    ):
        assert text in said.stdout
    assert picture.read_bytes()[:4] == b"\x89PNG"
    rows = list(csv.DictReader(_simulate(jobs, "--csv", "--seeds", "2").stdout.splitlines()))
    assert [(r["scheme"], r["seed"], r["job"]) for r in rows] == [
        ("planned", "0", "a"), ("planned", "0", "b"), ("planned", "1", "a"), ("planned", "1", "b")
    ]  # fmt: skip
    assert all(float(r["iteration_s"]) > 0 for r in rows)


def test_notes_explain_the_ideal_and_trees_that_are_not_faster(jobs: Path) -> None:
    common = ("-s", "panama", "-s", "ring", "-s", "ideal")
    quiet = " ".join(_simulate(jobs, *common).stdout.split())
    assert "ideal is a bound" in quiet
    assert "panama is not faster" not in quiet
    loud = _simulate(jobs, *common, "--load", "0.5", "--flow-sizes", "hadoop", "--transport", "cubic").stdout
    times = {r["scheme"]: r["jobs"] for r in _json(
        jobs, *common, "--load", "0.5", "--flow-sizes", "hadoop", "--transport", "cubic")["runs"]}  # fmt: skip
    mean = {s: sum(j["iteration_s"] for j in own) / len(own) for s, own in times.items()}
    slower = mean["panama"] > 0.95 * mean["ring"]
    assert ("panama is not faster than ring" in " ".join(loud.split())) == slower


def test_a_job_without_a_plan_is_refused_with_the_reason(tmp_path: Path) -> None:
    one = "name: {}\nworkers: [h1, h2]\nparameter_servers: 0\n"
    result = _simulate(_only(tmp_path, f"{one.format('a')}---\n{one.format('b')}"))
    assert result.exit_code == 3
    assert "planned: job 'b'" in result.stderr
    assert _simulate(_only(tmp_path, one.format("a")), "-s", "grid").exit_code == 3


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["-s", "rings"], "--scheme: 'rings' is unknown: expected one of planned, ring"),
        (["--flow-sizes", "mice"], "--flow-sizes: 'mice' is unknown: expected one of panama"),
        (["--model", "vgg"], "--model: 'vgg' is unknown: expected one of alexnet"),
        (["--json", "--csv"], "choose one"),
        (["--plot", "/proc/none/a.png"], "--plot /proc/none/a.png"),
    ],
)
def test_bad_options_say_what_would_be_right(jobs: Path, more: list[str], said: str) -> None:
    result = _simulate(jobs, *more)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


def test_errors_in_a_jobs_file_name_its_line(jobs: Path, tmp_path: Path) -> None:
    fabric = load_fabric("leaf-spine-2x2")
    for text, said in (
        (TWO.replace("rate: 40", "rates: 40"), r"one\.yaml:10:1: .*'rates'"),
        (TWO.replace("name: b", "name: a"), r"one\.yaml:6:1: a job 'a' is given twice"),
        ("", r"one\.yaml:1:1: the file is empty"),
    ):
        with pytest.raises(SpecError, match=said):
            read_jobs([_only(tmp_path, text)], fabric)
    with pytest.raises(SpecError, match=r"missing\.yaml.*cannot be read"):
        read_jobs([tmp_path / "missing.yaml"], fabric)
    assert [o.file.name for o in read_jobs([jobs], fabric)] == ["a", "b"]


def test_means_have_their_interval() -> None:
    assert spread([None]) == "-"
    assert spread([0.25, None]) == "250 ms"
    assert spread([1.0, 3.0]) == "2 ± 13 s"
