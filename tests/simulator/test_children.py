# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The simulator shows no job that the controller could not install: nodes take as many children as in a plan."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.controller.planning.plan import PlanningError
from netfold.simulator.command.cli import app
from netfold.simulator.scenario import InNetworkCollective, ScenarioError
from netfold.simulator.schemes.catalog import SchemeName, SchemeOptions, scheme_of
from netfold.topologies.generators import leaf_spine

WIDE = leaf_spine(40, 2, 1)
HOSTS = tuple(h.name for h in WIDE.hosts)


def test_a_scheme_whose_root_has_too_many_children_has_no_plan() -> None:
    with pytest.raises(PlanningError, match="40 children and 32 are the most"):
        scheme_of(SchemeName.PANAMA, WIDE, HOSTS)


def test_straight_trees_keep_to_the_limit_too() -> None:
    with pytest.raises(ScenarioError, match="switch spine1 would have 40 children and takes 32"):
        scheme_of(SchemeName.PANAMA, WIDE, HOSTS, SchemeOptions(planned=8))


def test_a_simulation_that_is_told_so_goes_beyond() -> None:
    scheme = scheme_of(SchemeName.PANAMA, WIDE, HOSTS, SchemeOptions(max_children=64))
    assert isinstance(scheme, InNetworkCollective)
    assert max(Counter(e.parent for e in scheme.plan.trees[0].edges).values()) == 40


def test_the_command_takes_the_packing(tmp_path: Path) -> None:
    fabric, job = tmp_path / "fabric.yaml", tmp_path / "job.yaml"
    fabric.write_text(
        "name: wide\ngenerate: {leaf_spine: {leaves: 36, spines: 2, hosts_per_leaf: 1, rate: 100}}\n"
    )
    job.write_text("name: j\nworkers: 36\nparameter_servers: 0\nelements: 100000\n")
    result = CliRunner().invoke(app, [str(fabric), str(job), "-s", "packing", "-s", "planned", "--json"])
    assert result.exit_code == 0, result.output
