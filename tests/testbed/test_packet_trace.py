# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A packet's path up its tree, the verdicts that are its own, and how counts are read from switches."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from netfold.protocol.wire import Verdict
from netfold.testbed.counters import VERDICTS_PER_TREE, read_verdicts
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


class Counting(p4r_grpc.P4RuntimeServicer):  # type: ignore[misc]
    """Two trees with 5 and 7 packets of one verdict."""

    def GetForwardingPipelineConfig(  # noqa: N802
        self, request: p4r.GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        answer = p4r.GetForwardingPipelineConfigResponse()
        preamble = answer.config.p4info.counters.add().preamble
        preamble.id, preamble.name = 99, "SwitchIngress.verdicts"
        return answer

    def Read(self, request: p4r.ReadRequest, context: grpc.ServicerContext) -> Iterator[p4r.ReadResponse]:  # noqa: N802
        answer = p4r.ReadResponse()
        for tree, packets in ((1, 5), (2, 7)):
            cell = answer.entities.add().counter_entry
            cell.index.index = tree * VERDICTS_PER_TREE + int(Verdict.ACCUMULATED)
            cell.data.packet_count = packets
        yield answer


@pytest.fixture
def address() -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    p4r_grpc.add_P4RuntimeServicer_to_server(Counting(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)


def test_verdicts_are_added_up_over_trees_and_no_proxy_is_asked(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    for variable in ("no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(variable, raising=False)
    switches = {
        "s1": SimpleNamespace(grpc_address=address, device_id=1),
        "dead": SimpleNamespace(grpc_address="127.0.0.1:1", device_id=2),
    }
    net = SimpleNamespace(switches=switches)
    assert read_verdicts(net) == {"s1": {"accumulated": 12}}  # type: ignore[arg-type]
