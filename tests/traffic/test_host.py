# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which host of the fabric a program runs on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import TOO_MANY_KEY, Connection
from netfold.traffic.errors import ControllerUnreachableError, UnknownHostError
from netfold.traffic.membership import call_turns
from netfold.traffic.membership.host import MemberHost, bindable, fabric_hosts, own_addresses, pick_host

HOSTS = (MemberHost("h1", "10.1.0.1"), MemberHost("h2", "10.1.0.2"))


def test_a_host_is_known_by_its_address():
    assert pick_host(HOSTS, ["192.0.2.9", "10.1.0.2"]).name == "h2"


def test_a_name_that_was_given_needs_no_address():
    assert pick_host(HOSTS, ["192.0.2.9"], "h1").address == "10.1.0.1"


@pytest.mark.parametrize(
    ("addresses", "wanted", "message"),
    [
        (["192.0.2.9"], "", r"no address of this machine \(192.0.2.9\) .* 2 hosts; .* NETFOLD_HOST"),
        ([], "", r"no address of this machine \(none\)"),
        (["10.1.0.1", "10.1.0.2"], "", "several hosts: h1, h2; choose one with NETFOLD_HOST"),
        (["10.1.0.1"], "h7", "'h7' is no host of the controller's fabric"),
    ],
)
def test_an_ambiguous_host_is_refused(addresses, wanted, message):
    with pytest.raises(UnknownHostError, match=message):
        pick_host(HOSTS, addresses, wanted)


def test_loopback_is_no_address_of_a_host():
    assert all(not address.startswith("127.") for address in own_addresses())


def test_an_address_of_another_machine_is_not_bound():
    assert bindable("127.0.0.1") == "127.0.0.1"
    assert bindable("192.0.2.254") == "0.0.0.0"


class _Busy(rpc.ControllerServicer):
    """It refuses the first calls, as those that are over the limit of a tenant."""

    def __init__(self, refusals: int, *, can_repeat: bool) -> None:
        self.left, self.can_repeat = refusals, can_repeat

    def ListHosts(self, request: pb.ListHostsRequest, context: Any) -> pb.ListHostsResponse:  # noqa: N802
        self.left -= 1
        if self.left >= 0:
            context.set_trailing_metadata(((TOO_MANY_KEY, "1"),) if self.can_repeat else ())
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "its limit is calls=20")
        return pb.ListHostsResponse(hosts=[pb.Host(name="h1", address="10.1.0.1")])


@pytest.mark.parametrize(
    ("limit_s", "can_repeat", "is_found"), [(60.0, True, True), (0.0, True, False), (60.0, False, False)]
)
def test_a_rank_waits_for_its_turn_among_many(tmp_path, monkeypatch, limit_s, can_repeat, is_found):
    monkeypatch.setattr(call_turns, "PAUSE_S", 0.0)
    server = grpc.server(ThreadPoolExecutor(1))
    rpc.add_ControllerServicer_to_server(_Busy(2, can_repeat=can_repeat), server)
    server.add_insecure_port(f"unix:{tmp_path}/c")
    server.start()
    try:
        where = Connection(f"unix:{tmp_path}/c")
        if is_found:
            assert fabric_hosts(where, limit_s=limit_s) == HOSTS[:1]
        else:
            with pytest.raises(ControllerUnreachableError, match="its limit is calls=20"):
                fabric_hosts(where, limit_s=limit_s)
    finally:
        server.stop(0).wait()
