# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Draws of workloads: sizes, models, placement."""

from __future__ import annotations

import numpy as np
import pytest

from netfold.simulator.scenario import ScenarioError
from netfold.simulator.workloads.models import MODELS, Accelerator, model
from netfold.simulator.workloads.sizes import HADOOP, PANAMA, WEB_SEARCH, Sizes, pareto
from netfold.simulator.workloads.traffic import WorkerPlacement, background, place
from netfold.topologies.generators import GBIT, fat_tree


def test_panamas_flows_are_of_7_kb_to_1_1_gb_with_a_mean_of_40_mb():
    assert PANAMA.mean == pytest.approx(40e6)
    assert (PANAMA.points[0][0], PANAMA.points[-1][0]) == (7e3, 1.1e9)
    drawn = PANAMA.draw(np.random.default_rng(1), 400_000)
    assert drawn.min() >= 6_999
    assert drawn.max() <= 1.1e9
    assert drawn.mean() == pytest.approx(40e6, rel=0.02)


@pytest.mark.parametrize("sizes", [WEB_SEARCH, HADOOP], ids=lambda s: s.name)
def test_drawn_sizes_have_the_distribution(sizes: Sizes):
    drawn = sizes.draw(np.random.default_rng(2), 200_000)
    for size, part in sizes.points[1:]:
        assert (drawn <= size).mean() == pytest.approx(part, abs=0.01)
    assert drawn.mean() == pytest.approx(sizes.mean, rel=0.02)


def test_a_mean_that_no_distribution_has_is_refused():
    with pytest.raises(ValueError, match="has the mean 99"):
        pareto(1.0, 10.0, 99.0)


@pytest.mark.parametrize("name", MODELS)
def test_buckets_make_up_the_gradient_and_become_ready_in_order(name: str):
    found = model(name, Accelerator.V100)
    assert found.bytes == 4 * MODELS[name].parameters
    ready = [b.ready for b in found.buckets]
    assert ready == sorted(ready)
    assert ready[-1] == pytest.approx(1.0)
    assert found.compute_s == pytest.approx(sum(MODELS[name].v100) / 1e3)


def test_racks_are_filled_or_workers_scattered():
    fabric = fat_tree(8, unit=GBIT)
    random = np.random.default_rng(3)
    packed = place(fabric, 12, WorkerPlacement.RACK, random)
    spread = place(fabric, 12, WorkerPlacement.SCATTERED, random)
    assert len({fabric.attachment(w) for w in packed}) == 3
    assert len({fabric.attachment(w) for w in spread}) > 6
    assert len(set(spread)) == 12
    with pytest.raises(ScenarioError, match="129 workers do not fit on 128 hosts"):
        place(fabric, 129, WorkerPlacement.RACK, random)


def test_background_flows_offer_the_load():
    fabric = fat_tree(4, rate=10.0, unit=GBIT)
    flows = background(fabric, 0.4, WEB_SEARCH, 2.0, np.random.default_rng(4))
    offered = sum(f.bytes for f in flows) * 8 / 2.0 / (16 * 10e9)
    assert offered == pytest.approx(0.4, rel=0.1)
    assert all(f.source != f.destination for f in flows)
    assert [f.start for f in flows] == sorted(f.start for f in flows)
