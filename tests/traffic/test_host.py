# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which host of the fabric a program runs on."""

from __future__ import annotations

import pytest

from netfold.traffic.errors import UnknownHostError
from netfold.traffic.membership.host import MemberHost, bindable, own_addresses, pick_host

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
