# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A packet's path up its tree, and the verdicts that are its own."""

from __future__ import annotations

import pytest

from netfold.protocol.wire import Verdict
from netfold.testbed.packet_trace import Hop, HopVerdict, Trace, trace, upstream_path

SWITCHES = {"leaf1", "leaf2", "spine1"}
TREE = {
    "edges": [
        {"child": "h1", "path": ["h1", "leaf1"]},
        {"child": "h5", "path": ["h5", "leaf2", "spine1"]},
        {"child": "leaf1", "path": ["leaf1", "spine1"]},
    ]
}
LEAF, SPINE = Hop("leaf1", adds=True), Hop("spine1", adds=True)


def test_a_path_has_the_switches_up_to_the_root():
    assert upstream_path(TREE, "h1", SWITCHES) == [LEAF, SPINE]
    assert upstream_path(TREE, "h5", SWITCHES) == [Hop("leaf2", adds=False), SPINE]


def test_a_parameter_server_ends_the_path_before_it():
    tree = {"edges": [{"child": "h1", "path": ["h1", "leaf1", "ps1"]}]}
    assert upstream_path(tree, "h1", SWITCHES) == [Hop("leaf1", adds=False)]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({}, Trace((), "leaf1")),
        ({("leaf1", 7): {"accumulated": 4}}, Trace((HopVerdict(LEAF, Verdict.ACCUMULATED),))),
        ({("leaf1", 7): {"sum_sent": 1}}, Trace((HopVerdict(LEAF, Verdict.SUM_SENT),), "spine1")),
        (
            {
                ("leaf1", 7): {"sum_sent": 1, "multicast": 1, "slot_read": 9},
                ("spine1", 7): {"result_sent": 1},
            },
            Trace((HopVerdict(LEAF, Verdict.SUM_SENT), HopVerdict(SPINE, Verdict.RESULT_SENT))),
        ),
        (
            {("leaf1", 7): {"sum_resent": 1, "forwarded": 1}, ("spine1", 7): {"result_resent": 1}},
            Trace((HopVerdict(LEAF, Verdict.SUM_RESENT), HopVerdict(SPINE, Verdict.RESULT_RESENT))),
        ),
        ({("leaf1", 0): {"unadmitted": 1, "slot_read": 3}}, Trace((HopVerdict(LEAF, Verdict.UNADMITTED),))),
        ({("leaf1", 8): {"accumulated": 1}}, Trace((), "leaf1")),
    ],
)
def test_the_new_counts_of_the_tree_are_the_packet_s(after, expected):
    before = {("leaf1", 7): {"accumulated": 3}}
    assert trace([LEAF, SPINE], 7, before, {**before, **after}) == expected
