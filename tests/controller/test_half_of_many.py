# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job whose values would keep too few bits is refused before it runs."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from netfold.controller.jobs.file import resolve_job
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.switch_requirements import check_half, check_requirements
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.topologies.generators import leaf_spine

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
