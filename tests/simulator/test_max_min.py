# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Rates of the flow level against a plain reference, and against what makes them max-min."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.simulator.flow.native import Stream, rates


def reference(capacity: list[float], rows: list[Stream]) -> list[float]:
    """Progressive filling as in the textbook: the level of all rises until a link is full or a cap is reached."""
    rate: dict[int, float] = {}
    while len(rate) < len(rows):
        open_ = [i for i in range(len(rows)) if i not in rate]
        levels = {("cap", i): rows[i].cap / rows[i].weight for i in open_}
        for link, room in enumerate(capacity):
            used = sum(_coef(rows[i], link) * rate[i] for i in rate)
            weight = sum(_coef(rows[i], link) * rows[i].weight for i in open_)
            if weight > 0:
                levels["link", link] = max(0.0, room - used) / weight
        (kind, which), level = min(levels.items(), key=lambda item: item[1])
        for i in open_:
            if (kind == "cap" and i == which) or (kind == "link" and _coef(rows[i], which) > 0):
                rate[i] = rows[i].weight * level
    return [rate[i] for i in range(len(rows))]


def _coef(row: Stream, link: int) -> float:
    return sum(c for at, c in zip(row.links, row.coefs, strict=True) if at == link)


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[float], list[Stream]]:
    links = draw(st.integers(1, 6))
    capacity = [float(draw(st.integers(1, 20))) for _ in range(links)]
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        used = draw(st.lists(st.integers(0, links - 1), min_size=1, max_size=links, unique=True))
        coefs = [draw(st.sampled_from([0.5, 1.0, 2.0, 7.0])) for _ in used]
        cap = draw(st.sampled_from([math.inf, math.inf, 0.25, 3.0]))
        rows.append(Stream(used, coefs, weight=draw(st.sampled_from([0.5, 1.0, 1.0, 4.0])), cap=cap))
    return capacity, rows


@settings(max_examples=100)
@given(networks(), st.data())
def test_rates_are_those_of_the_textbook(network: tuple[list[float], list[Stream]], data: st.DataObject):
    capacity, rows = network
    leaving = data.draw(st.integers(0, len(rows) - 1))
    found, _ = rates(capacity, rows, leaving)
    assert found[:leaving].tolist() == [0.0] * leaving
    np.testing.assert_allclose(found[leaving:], reference(capacity, rows[leaving:]), rtol=1e-6)


def test_no_link_is_over_its_capacity_and_every_flow_has_a_bottleneck():
    random = np.random.default_rng(5)
    capacity = random.uniform(1, 10, 60).tolist()
    rows = [
        Stream(random.choice(60, 5, replace=False).tolist(), (1.0,) * 5, weight=float(random.uniform(0.2, 3)))
        for _ in range(400)
    ]
    rate, bottleneck = rates(capacity, rows, 100)
    load = np.zeros(60)
    for row, x in zip(rows, rate, strict=True):
        load[list(row.links)] += x
    assert (load <= np.array(capacity) * (1 + 1e-9)).all()
    for i in range(100, 400):
        at = bottleneck[i]
        assert load[at] == pytest.approx(capacity[at])
        level = max(rate[j] / rows[j].weight for j in range(100, 400) if at in rows[j].links)
        assert rate[i] / rows[i].weight == pytest.approx(level)


def test_a_tree_has_one_rate_over_all_its_links():
    """The textbook's example of a long flow over two links, with a tree as the long one."""
    tree, short, fast = Stream([0, 1, 2], [1.0] * 3), Stream([0], [1.0]), Stream([2], [1.0])
    rate, bottleneck = rates([10.0, 10.0, 30.0], [tree, short, fast])
    assert rate.tolist() == pytest.approx([5.0, 5.0, 25.0])
    assert bottleneck.tolist() == [0, 0, 2]


def test_weights_divide_and_caps_leave_room():
    heavy, light, capped = Stream([0], [1.0], weight=3), Stream([0], [1.0]), Stream([0], [1.0], cap=2.0)
    rate, bottleneck = rates([10.0], [heavy, light, capped])
    assert rate.tolist() == pytest.approx([6.0, 2.0, 2.0])
    assert rates([10.0], [heavy, light])[0].tolist() == pytest.approx([7.5, 2.5])
    assert bottleneck[0] == 0
