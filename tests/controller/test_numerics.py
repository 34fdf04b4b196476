# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs whose numerics are refused, and by which name: float32 where a program adds none, short floats that would keep
too few bits."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from netfold.controller.jobs.file import ResolvedJob, resolve_job
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.switch_requirements import check_floats, check_half, check_requirements
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


FABRIC = leaf_spine(65, 16, 16)


def check(workers: int, numerics: str) -> None:
    resolved = resolve_job(
        f"name: j\nscheme: packing\nworkers: {workers}\nnumerics: {{mode: {numerics}}}\n", FABRIC
    )
    check_requirements(FABRIC, PacketModel(256), resolved, plan_job(FABRIC, PlanRequest(resolved)))


def test_half_of_more_than_1024_workers_is_refused_with_what_would_fit() -> None:
    expected = (
        "keep 3 bits of a value with 1025 workers; expected at most 1024 workers, which keep 4, or block"
    )
    with pytest.raises(RefusedError, match=expected):
        check(1025, "half")


def test_auto_of_so_many_that_short_floats_keep_no_bit_is_refused() -> None:
    fabric = leaf_spine(2, 1, 2)
    resolved = resolve_job("name: j\nscheme: packing\nworkers: 2\n", fabric)
    for workers, is_refused in ((8192, False), (8193, True), (32767, True)):
        large = resolved.model_copy(update={"workers": tuple(f"h{i}" for i in range(workers))})
        expected = f"'auto' keep 0 bits of a float16 or bfloat16 with {workers} workers; expected at most 8192 .* block"
        with pytest.raises(RefusedError, match=expected) if is_refused else nullcontext():
            check_half(large)


def test_quarter_of_more_than_64_workers_is_refused() -> None:
    with pytest.raises(RefusedError, match="'quarter' are for at most 64 workers, and it has 65"):
        check(65, "quarter")


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "numerics"), [(1024, "half"), (1025, "block"), (64, "quarter")])
def test_others_are_accepted(workers: int, numerics: str) -> None:
    check(workers, numerics)
