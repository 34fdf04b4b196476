# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs whose numerics are float32: where they are refused, and by which name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from netfold.controller.jobs.file import ResolvedJob, resolve_job
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.switch_requirements import check_floats
from netfold.controller.planning.plan import Plan
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.p4src.manifest import lanes_with
from netfold.p4src.tools.p4build import COMPILED, LANES, REPOSITORY
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine
from netfold.topologies.ports import Chip

JOB = "name: f\nworkers: [h1, h2, h3, h4]\nscheme: panama\nnumerics: {mode: MODE}\n"


def planned(fabric: Fabric, mode: str) -> tuple[ResolvedJob, Plan]:
    resolved = resolve_job(JOB.replace("MODE", mode), fabric)
    return resolved, plan_job(fabric, PlanRequest(resolved))


@pytest.mark.parametrize("lanes", LANES)
def test_a_program_that_adds_no_floats_is_refused_by_its_switch_s_name(lanes: int):
    fabric = leaf_spine(2, 2, 2)
    resolved, plan = planned(fabric, "float32")
    packet_model = PacketModel(lanes, 1.0, 0.01)
    if lanes in lanes_with("floats"):
        check_floats(fabric, packet_model, resolved, plan)
    else:
        with pytest.raises(RefusedError, match=f"switch .* runs a program of {lanes} lanes.*--lanes 64"):
            check_floats(fabric, packet_model, resolved, plan)
    check_floats(fabric, packet_model, *planned(fabric, "block"))


def test_a_chip_is_refused():
    fabric = leaf_spine(2, 2, 2)
    resolved, plan = planned(fabric, "float32")

    class OnChips:
        """The fabric as far as the check looks at it."""

        is_host = staticmethod(fabric.is_host)

        def switch(self, name: str) -> Any:
            return replace(fabric.switch(name), chip=Chip.TOFINO2)

    on_chips: Any = OnChips()
    with pytest.raises(RefusedError, match="is a tofino2, whose program adds whole numbers"):
        check_floats(on_chips, PacketModel(64, 1.0, 0.01), resolved, plan)


@pytest.mark.parametrize("lanes", LANES)
def test_the_programs_that_are_named_are_those_that_add_floats(lanes: int):
    program = (REPOSITORY / COMPILED / f"netfold-v1model-{lanes}.json").read_text()
    assert ("add_floats" in program) is (lanes in lanes_with("floats"))


def test_a_leaf_that_takes_floats_from_roce_has_to_know_them_too():
    """Also where only a parameter server adds up: the bytes have another order in RoCE."""
    fabric = leaf_spine(2, 2, 3, parameter_servers=1)
    text = "name: f\nworkers: [h1, h2, h4, h5]\nparameter_servers: 1\nscheme: none\ntransport: roce\n"
    resolved = resolve_job(text + "numerics: {mode: float32}\n", fabric)
    plan = plan_job(fabric, PlanRequest(resolved))
    assert all(fabric.is_host(n) for tree in plan.trees for n in tree.nodes)
    check_floats(fabric, PacketModel(64, 1.0, 0.01), resolved, plan)
    with pytest.raises(RefusedError, match="switch leaf1 runs a program of 256 lanes"):
        check_floats(fabric, PacketModel(256, 1.0, 0.01), resolved, plan)
