# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""ICMP errors, which any host can forge, stop neither a worker nor a parameter server."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker
from tests.traffic.icmp import ERRORS, forge

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: raw sockets need root"),
]

WORKER, SERVER, PORT = "127.66.0.1", "127.66.0.254", 61670


def assignment(children: tuple[int, ...] = ()) -> Assignment:
    tree = TreeAssignment(3, 1.0, 64, 32, 0, SERVER, children)
    return Assignment("icmp", 1, PORT, 64, 0, 1, (tree,))


@pytest.mark.parametrize(("kind", "code"), ERRORS)
def test_calls_end_well_under_forged_icmp_errors(kind: int, code: int):
    server = ParameterServer(assignment((0,)), SERVER, [Address(WORKER, PORT)])
    serving = threading.Thread(target=server.serve)
    serving.start()
    ended = threading.Event()

    def flood() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
            while not ended.wait(0.0005):
                for source, destination in ((WORKER, SERVER), (SERVER, WORKER)):
                    raw.sendto(forge(kind, code, source, destination, PORT), (source, 0))

    forging = threading.Thread(target=flood)
    forging.start()
    try:
        with Worker(StaticMembership(assignment()), WORKER) as worker:
            for _ in range(30):
                array = np.arange(64 * 200, dtype=np.int32)
                worker.all_reduce(array, timeout=30)
                np.testing.assert_array_equal(array, np.arange(64 * 200))
    finally:
        ended.set()
        forging.join()
        server.stop()
        serving.join()
        server.close()


def test_a_forged_path_mtu_does_not_fragment_packets():
    """In a network namespace of its own: route exceptions last for ten minutes."""
    script = Path(__file__).with_name("icmp.py")
    command = ["unshare", "-n", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    whole = 20 + 8 + 1040
    assert [struct.unpack("!HH", bytes.fromhex(line)) for line in done.stdout.split()] == [
        (whole, 0x4000)
    ] * 2
