# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold plan` as a user calls it, and job files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from netfold.cli import build
from netfold.controller.jobs.file import JobError, resolve_job
from netfold.controller.jobs.lookup import EXAMPLES, default_job, load_job
from netfold.controller.planning.planner import SchemeComparison, make_plan
from netfold.controller.planning.scheme_registry import SCHEMES
from netfold.evaluation.papers.inart import INART
from netfold.topologies.spec import load_fabric

KEYS = {"algorithm", "rate", "unit", "bound", "gap", "rounded_rate", "published", "solve_s", "trees", "loads"}


def _netfold(*arguments: str) -> Result:
    return CliRunner().invoke(build("plan"), ["plan", *arguments])


def test_json_has_the_promised_keys_and_the_papers_rate() -> None:
    result = _netfold("grid-fig1", "--scheme", "grid", "--json")
    assert result.exit_code == 0
    plan = json.loads(result.stdout)
    assert plan.keys() >= KEYS
    assert plan["rate"] == pytest.approx(3.0)
    assert (plan["algorithm"], plan["unit"], plan["published"]) == ("grid", "Gbit/s", 3.0)
    assert plan["loads"]["switches"]["S1"] == {"load": pytest.approx(9.0), "capacity": 9.0}
    assert plan["loads"]["links"]["S1->S3"]["capacity"] == 3.0


def test_the_jobs_own_scheme_is_the_default() -> None:
    plan = json.loads(_netfold("inart-fig1", "--json").stdout)
    assert plan["algorithm"] == "inart"
    assert plan["published"] == 2.5


def test_published_is_null_where_no_paper_has_a_figure() -> None:
    assert json.loads(_netfold("grid-fig1", "-s", "panama", "--json").stdout)["published"] is None


def test_compare_has_the_reason_of_a_scheme_without_a_plan_below_the_table() -> None:
    """It has no column of its own: each cell of the table has what its head says."""
    lines = _netfold("tofino-leaf", "--compare").stdout.splitlines()
    (row,) = [line for line in lines if "│ grid " in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["grid", *["-"] * 8]
    (reason,) = [line for line in lines if line.startswith("grid: ")]
    assert "names no parameter server" in reason


@pytest.mark.slow
def test_compare_has_a_row_per_scheme() -> None:
    result = _netfold("inart-fig1", "--compare", "--json")
    assert [row["scheme"] for row in json.loads(result.stdout)] == list(SCHEMES)
    table = _netfold("inart-fig1", "--compare").stdout
    assert all(name in table for name in SCHEMES)
    assert "2.66667" in table


def test_the_bound_of_a_table_is_that_of_any_scheme() -> None:
    """Not of a linear program alone."""
    heads, *_ = (row for row in _netfold("grid-fig1", "-s", "packing").stdout.splitlines() if "rate" in row)
    assert [h.strip() for h in heads.strip("┃ ").split("┃")][3:5] == ["bound", "gap"]


def test_tables_name_trees_and_loads() -> None:
    table = _netfold("grid-fig1", "-s", "atp").stdout
    for text in ("2.4375", "link S1->S3", "switch S1", "W1 W2 W3 W4"):
        assert text in table


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    file = tmp_path / "new" / "plan.png"
    assert _netfold("inart-fig1", "--plot", str(file)).exit_code == 0
    assert file.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["no-such-fabric"], 2, "no-such-fabric"),
        (["grid-fig1", "--scheme", "best"], 2, "there are none"),
        (["grid-fig1", "no-such-job"], 2, "no-such-job"),
        (["grid-fig1", "--plot", "picture.exe"], 2, "expected one of .png, .svg, .pdf"),
        (["grid-fig1", "--plot", "/proc/nowhere/x.png"], 2, "/proc/nowhere"),
        (["grid-fig1", "--roundings", "0"], 2, "roundings"),
        (["grid-fig1", "--compare", "--plot", "x.png"], 2, "leave --compare out"),
        (["inart-fig1", "grid-fig1"], 2, "'PS' is no host of fabric 'inart-fig1'"),
    ],
)
def test_bad_input_is_named_with_its_exit_code(arguments: list[str], code: int, message: str) -> None:
    result = _netfold(*arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_job_without_a_plan_exits_with_3(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("name: j\nparameter_servers: []\nworkers: [W1, W2]\nscheme: grid\n")
    result = _netfold("grid-fig1", str(job))
    assert result.exit_code == 3
    assert "parameter server" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: j\nworkers: [W1, X9]\n", r"job.yaml:2:15: 'X9' is no host"),
        ("name: j\nworker: [W1]\n", r"job.yaml:2:1: unknown key 'worker'; did you mean 'workers'"),
        ("workers: [W1]\n", "name"),
        ("name: j\nelements: 0\n", "elements"),
        ("name: j\nworkers: []\n", "workers"),
        ("name: j\nname: k\n", "given twice"),
        ("[1, 2]\n", "a job is a mapping"),
        ("name: j\npublished: {grid: -1}\n", "published"),
        ("name: ../j\n", "name"),
    ],
)
def test_a_bad_job_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text)
    with pytest.raises(Exception, match=message) as caught:
        load_job(file, load_fabric("grid-fig1"))
    assert isinstance(caught.value, JobError | ValueError)


def test_a_job_takes_all_hosts_and_servers_unless_it_says_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: j\nelements: 5\n")
    spec = load_job(file, load_fabric("grid-fig1")).spec
    assert spec.workers == tuple(f"W{i}" for i in range(1, 9))
    assert spec.parameter_servers == ("PS",)
    assert (spec.elements, spec.scheme) == (5, "auto")


RACKS = "name: racks\nunit: Gbit/s\ngenerate: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 60%s}}\n"


def test_a_plan_that_the_children_of_a_node_hold_down_says_so_and_what_lifts_it(tmp_path: Path) -> None:
    fabric, job = tmp_path / "f.yaml", tmp_path / "j.yaml"
    job.write_text("name: j\nworkers: 55\nscheme: panama\n")
    fabric.write_text(RACKS % "")
    held = _netfold(str(fabric), str(job), "--json")
    assert "leaf1 takes 32 children" in held.stderr
    assert "'children' in the fabric's file may be up to 256" in held.stderr
    assert "without this limit the rate is 100 Gbit/s" in held.stderr.replace("\n", " ")
    fabric.write_text(RACKS % ", children: 64")
    lifted = _netfold(str(fabric), str(job), "--json")
    assert "children" not in lifted.stderr
    assert json.loads(lifted.stdout)["rate"] > 5 * json.loads(held.stdout)["rate"]


def test_full_nodes_are_not_mentioned_where_they_cost_nothing(tmp_path: Path) -> None:
    """All four hosts are children of the one switch, and no more are to come."""
    fabric, job = tmp_path / "f.yaml", tmp_path / "j.yaml"
    fabric.write_text("name: f\ngenerate: {single_switch: {hosts: 4, children: 4}}\n")
    job.write_text("name: j\nworkers: 4\nscheme: switchml\n")
    result = _netfold(str(fabric), str(job))
    assert result.exit_code == 0
    assert result.stderr == ""


def test_a_least_rate_above_a_workers_link_is_answered_with_the_link(tmp_path: Path) -> None:
    job = tmp_path / "j.yaml"
    job.write_text("name: j\nmin_rate: 300\n")
    result = _netfold("leaf-spine-2x2", str(job))
    assert result.exit_code == 2
    assert "j.yaml:2:1: min_rate is 300, and the link of worker 'h1' carries 100 Mbit/s" in result.stderr
    assert "expected at most 100" in result.stderr


SUBMITTED = """name: j
workers: 4
parameter_servers: 1
scheme: grid
seed: 3
priority: 5
rate: 2
min_rate: 1
slots: 256
on_worker_loss: continue
lease_ms: 3000
join_s: 60
numerics: {mode: fixed, fraction_bits: 12}
"""


def test_the_file_of_a_job_that_is_submitted_can_be_planned(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(SUBMITTED)
    result = _netfold("grid-fig1", str(file), "--json")
    assert result.exit_code == 0, result.stderr
    plan = json.loads(result.stdout)
    assert (plan["algorithm"], plan["rate"]) == ("grid", 2.0), (
        "at the rate that the file asks for, as admission does"
    )
    assert max(row["load"] for row in plan["loads"]["links"].values()) <= 9
    fast = json.loads(_netfold("grid-fig1", str(file), "-s", "none", "--json").stdout)
    assert fast["rate"] < 2.0 + 1e-9
    order = resolve_job(SUBMITTED, load_fabric("grid-fig1"))
    assert load_job(file, load_fabric("grid-fig1")).spec == order.spec()
    assert load_job(file, load_fabric("grid-fig1")).seed == 3


def test_a_job_that_cannot_have_its_least_rate_exits_with_3(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: j\nscheme: none\nmin_rate: 2.5\n")
    result = _netfold("grid-fig1", str(file))
    assert result.exit_code == 3
    assert "would get 1 Gbit/s, below its min_rate 2.5" in result.stderr
    table = _netfold("grid-fig1", str(file), "--compare").stdout
    assert "below its min_rate" in table


@pytest.mark.parametrize("name", sorted(p.stem for p in EXAMPLES.glob("*.yaml")))
def test_every_committed_example_plans(name: str) -> None:
    fabric = load_fabric(name)
    assert make_plan(fabric, default_job(fabric).spec).rate > 0


def test_a_fabric_without_an_example_gets_a_job_over_all_hosts() -> None:
    result = _netfold("leaf-spine-4x2", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["rate"] > 0


@pytest.mark.slow
def test_plans_side_by_side_are_those_made_alone() -> None:
    setup = INART.draw(INART.figures[0], 10, 0)
    several = SchemeComparison(setup.fabric, setup.job, seed=4)
    for scheme, options in (
        ("inart", {}),
        ("inart", {"trees_per_server": 4}),
        ("grid", {}),
        ("optimal", {}),
        ("atp", {}),
    ):
        together = several.plan(scheme, options)
        alone = make_plan(setup.fabric, replace(setup.job, scheme=scheme, options=options), seed=4)
        assert replace(together, solve_s=0.0) == replace(alone, solve_s=0.0)
