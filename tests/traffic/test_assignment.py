# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netfold.traffic.errors import InvalidAssignmentError
from netfold.traffic.membership.assignment import Assignment, TreeAssignment


def part(tree: int = 1, share: float = 1.0, **changes: object) -> TreeAssignment:
    fields = {"slots": 8, "window": 4, "child": 0, "destination": "10.0.0.1", **changes}
    return TreeAssignment(tree=tree, share=share, **fields)


def job(*trees: TreeAssignment) -> Assignment:
    return Assignment("j", 1, 61440, 64, 0, 2, trees)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"slots": 6}, "slots is 6"),
        ({"slots": 1, "window": 1}, "slots is 1"),
        ({"window": 5}, "window is 5; it must be 1 to half the slots, 4"),
        ({"window": 0}, "window is 0"),
        ({"share": 1.5}, "share is 1.5"),
        ({"share": float("nan")}, "share is nan"),
        ({"destination": "h1"}, "destination is 'h1'"),
        ({"tree": 1 << 16}, "tree is 65536"),
        ({"children": (1, 1)}, "child is named twice"),
        ({"children": (1, 2), "sources": (("10.0.0.1",),)}, "sources for 1 of 2 children"),
        ({"children": (1,), "sources": (("h1",),)}, "a source is 'h1'"),
    ],
)
def test_a_bad_tree_is_refused_by_field(changes, what):
    with pytest.raises(InvalidAssignmentError, match=what):
        part(**changes)


def test_trees_are_told_apart_and_there_is_one():
    with pytest.raises(InvalidAssignmentError, match="trees is empty"):
        job()
    with pytest.raises(InvalidAssignmentError, match="named twice"):
        job(part(3, 0.5), part(3, 0.5))


def test_shares_have_to_add_up():
    with pytest.raises(InvalidAssignmentError, match=r"add up to 0\.9"):
        job(part(1, 0.4), part(2, 0.5)).bounds()


@given(st.lists(st.integers(0, 100), min_size=1, max_size=6).filter(any))
def test_the_bounds_of_trees_follow_the_shares(weights):
    shares = [w / sum(weights) for w in weights]
    bounds = job(*(part(i, s) for i, s in enumerate(shares))).bounds()
    assert sorted(bounds) == list(bounds)
    assert bounds[-1] == pytest.approx(1)
    for share, first, last in zip(shares, (0.0, *bounds), bounds, strict=False):
        assert last - first == pytest.approx(share)
