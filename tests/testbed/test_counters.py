# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What is read from switches over P4Runtime, from a stand-in server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from netfold.protocol.wire import Verdict
from netfold.testbed.counters import VERDICTS_PER_TREE, read_verdicts


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
