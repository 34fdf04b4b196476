# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers aggregate over switches whose ports are DPDK's, end to end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from softswitch.engine.dpdk import eal
from softswitch.engine.dpdk.device import DpdkError

from netfold.testbed import Testbed
from netfold.testbed.network.targets import Launch, Softswitch
from tests.testbed.test_testbed_runs import SUM


def _problem() -> str:
    try:
        eal.compiler_flags()
    except DpdkError as error:
        return str(error)
    return ""


pytestmark = [
    pytest.mark.root,
    pytest.mark.mininet,
    pytest.mark.slow,
    pytest.mark.skipif(bool(_problem()), reason=f"SKIPPED: needs libdpdk-dev: {_problem()}"),
]


@pytest.fixture
def testbed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Testbed]:
    """Links carry frames one by one: the driver takes no runs of the kernel. Its sockets of two switches may have the
    same group in the kernel, so there is one switch."""
    command = Softswitch.command

    def with_devices(self: Softswitch, launch: Launch) -> list[str]:
        words = command(self, launch)
        for port in launch.ports:
            at = words.index(f"{port.number}@{port.interface}")
            words[at] = f"{port.number}@dpdk:net_af_packet{port.number},iface={port.interface}"
        return words

    monkeypatch.setattr(Softswitch, "command", with_devices)
    monkeypatch.setattr(Softswitch, "takes_bursts", False)
    with Testbed("single", target="softswitch", lanes=64, name="dpd", first_grpc_port=9680) as running:
        yield running


def test_workers_get_right_sums_over_ports_of_dpdk(testbed: Testbed) -> None:
    results = testbed.submit("sums", SUM, scheme="switchml").result()
    assert set(results) == set(testbed.workers)
    assert sum(r["wrong_elements"] for r in results.values()) == 0
