# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Double binary trees: each spans all workers, is as deep as a binary tree, and no worker is an inner node of both."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from netfold.simulator.flow.run import simulate
from netfold.simulator.scenario import HostCollective, Job, Scenario
from netfold.simulator.schemes.binary_trees import depth, double_binary_tree, parents
from netfold.simulator.schemes.catalog import SchemeName, scheme_of
from netfold.simulator.workloads.models import all_reduces
from netfold.topologies.generators import GBIT, leaf_spine

SIZES = [*range(2, 70), 127, 128, 129, 1000, 1024]


@pytest.mark.parametrize("count", SIZES)
def test_both_trees_span_all_workers_within_a_binary_depth(count: int) -> None:
    for above in parents(count):
        assert above.count(None) == 1
        assert depth(above) <= math.ceil(math.log2(count)) + (count % 2)  # depth ends: there is no circle
        assert max(Counter(p for p in above if p is not None).values()) <= 2


@pytest.mark.parametrize("count", SIZES)
def test_an_inner_node_of_one_tree_is_a_leaf_of_the_other(count: int) -> None:
    first, second = ({p for p in above if p is not None} for above in parents(count))
    assert len(first & second) <= count % 2


@pytest.mark.parametrize("count", SIZES)
def test_no_worker_sends_or_receives_more_than_two_bytes_for_a_byte(count: int) -> None:
    scheme = double_binary_tree([f"h{n}" for n in range(count)])
    sent: Counter[str] = Counter()
    received: Counter[str] = Counter()
    for hop in scheme.hops:
        sent[hop.source] += hop.factor  # type: ignore[assignment]
        received[hop.destination] += hop.factor  # type: ignore[assignment]
    assert sent == received
    assert max(sent.values()) <= 2 + (count % 2) / 2
    assert sum(sent.values()) == pytest.approx(2 * (count - 1))


def test_it_is_as_fast_as_a_ring_for_large_arrays_and_faster_for_small_ones() -> None:
    fabric = leaf_spine(4, 4, 16, rate=100, unit=GBIT)
    workers = tuple(h.name for h in fabric.hosts)

    def seconds(name: SchemeName, size: int) -> float:
        scheme = scheme_of(name, fabric, workers)
        assert isinstance(scheme, HostCollective)
        (job,) = simulate(Scenario(fabric, (Job("j", workers, all_reduces(size), scheme),))).jobs
        return job.all_reduce_s[0]

    ring, trees = SchemeName.RING, SchemeName.DOUBLE_BINARY_TREE
    assert seconds(trees, 4096) < 0.2 * seconds(ring, 4096)
    assert seconds(trees, 1 << 30) == pytest.approx(seconds(ring, 1 << 30), rel=0.1)
