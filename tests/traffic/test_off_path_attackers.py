# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Off-path attackers (docs/explanation/security.md): whatever they send to a worker, a parameter server, a member's
stream or a TCP ring, at any rate, no call fails and no sum is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker
from netfold.traffic.workloads.ring import RingWorker
from tests.traffic.off_path import ERRORS, Flow, Plan, attacking, parse_sockets
from tests.traffic.serving import serving
from tests.traffic.tls import Tls, reached

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: raw sockets need root"),
]

WORKER, SERVER, STRANGER, PORT = "127.67.0.1", "127.67.0.254", "127.67.0.66", 61670
RING, RING_PORT = ("127.67.1.1", "127.67.1.2"), 61671
FLOWS = (Flow(WORKER, SERVER, PORT, PORT), Flow(SERVER, WORKER, PORT, PORT))
CALL_S = 60.0


def assignment(children: tuple[int, ...] = (), sources: tuple[tuple[str, ...], ...] = ()) -> Assignment:
    tree = TreeAssignment(3, 1.0, 64, 32, 0, SERVER, children, sources)
    return Assignment("attacked", 1, PORT, 64, 0, 1, (tree,))


def parameter_server() -> ParameterServer:
    """A parameter server of two threads, which share what one socket has alone."""
    return ParameterServer(assignment((0,), ((WORKER,),)), SERVER, [Address(WORKER, PORT)], threads=2)


def assert_calls_are_right(worker: Worker, calls: int) -> None:
    for number in range(calls):
        array = np.arange(number, number + 64 * 200, dtype=np.int32)
        expected = array.copy()
        worker.all_reduce(array, timeout=CALL_S)
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in ERRORS}))
def test_well_quoted_icmp_errors_of_all_codes_fail_no_call(kind: int):
    codes = tuple(error for error in ERRORS if error[0] == kind)
    plan = Plan("icmp", FLOWS, (STRANGER, SERVER, WORKER), kinds=codes)
    with (
        serving(parameter_server()),
        Worker(StaticMembership(assignment()), WORKER) as worker,
        attacking(plan) as attack,
    ):
        assert_calls_are_right(worker, 200)
    assert attack.sent > 0


def flood_with_icmp(seed: int, calls: int) -> None:
    plan = Plan("icmp", FLOWS, (STRANGER, SERVER, WORKER), seed=seed)
    with (
        serving(parameter_server()),
        Worker(StaticMembership(assignment()), WORKER) as worker,
        attacking(plan) as attack,
    ):
        assert_calls_are_right(worker, calls)
        while not (
            errors := worker.stats.socket_errors()
        ):  # until the attack has reached the worker's socket
            assert_calls_are_right(worker, 10)
    assert errors <= attack.sent


def test_a_flood_of_icmp_of_all_types_and_codes_fails_no_call():
    flood_with_icmp(seed=1, calls=200)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_long_flood_of_icmp_of_all_types_and_codes_fails_no_call(seed: int):
    flood_with_icmp(seed, calls=5000)


def test_datagrams_of_a_process_without_rights_reach_no_sum_and_no_congestion_window():
    """They bear ECN marks: none is counted as a mark on the job's results."""
    plan = Plan("datagrams", FLOWS, (STRANGER, WORKER, SERVER), lanes=64, seed=2)
    with serving(parameter_server()) as server, Worker(StaticMembership(assignment()), WORKER) as worker:
        with attacking(plan):
            assert_calls_are_right(worker, 200)
            while not {"unadmitted", "malformed"} <= server.counts().keys():  # until some reached the server
                assert_calls_are_right(worker, 10)
        [tree] = worker.stats.trees()
        assert tree.marked == 0


def test_a_forged_path_mtu_does_not_fragment_packets_and_does_not_change_a_locked_route():
    script = [sys.executable, "-m", "tests.traffic.path_mtu_trial"]
    done = subprocess.run(["unshare", "-n", *script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    whole = 20 + 8 + 1040
    assert found["packets"] == [[whole, 0x4000]] * 2
    assert (found["route"], found["locked"]) == (576, 1500), "the forgery counts, but not on a locked route"
    assert "1068 bytes exceeds the MTU of interface d0 (1000) to" in found["too_long"]
    assert "at most 239 lanes" in found["too_long"]


class JoinJobServicer(rpc.ControllerServicer):
    """Sends every member its assignment."""

    def __init__(self) -> None:
        self.streams = 0

    def JoinJob(self, requests, context) -> Iterator[pb.ControllerUpdate]:  # noqa: N802 (the proto's name)
        self.streams += 1
        tree = pb.TreeAssignment(tree=3, share=1.0, slots=64, window=32, destination=SERVER)
        message = pb.Assignment(job="attacked", epoch=1, udp_port=PORT, lanes=64, workers=1, trees=[tree])
        yield pb.ControllerUpdate(assignment=message, lease_ms=30)
        for _ in requests:
            pass


@contextmanager
def controller(tls: Tls) -> Iterator[tuple[JoinJobServicer, int]]:
    servicer = JoinJobServicer()
    server = grpc.server(ThreadPoolExecutor(8))
    rpc.add_ControllerServicer_to_server(servicer, server)
    credentials = grpc.ssl_server_credentials([(tls.key.read_bytes(), tls.certificate.read_bytes())])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield servicer, port
    finally:
        server.stop(0).wait()


def test_resets_of_the_stream_to_the_controller_fail_no_call(tls: Tls, tmp_path: Path):
    """Even with the right sequence numbers, which an off-path attacker cannot know."""
    with serving(parameter_server()), controller(tls) as (servicer, port):
        plan = Plan("resets", (Flow("127.0.0.1", "127.0.0.1", 0, port),))
        member = ControllerMembership(reached(f"127.0.0.1:{port}", tls, tmp_path), "attacked", "h1")
        # The attack ends first: leaving takes a connection that lives longer than it allows one.
        with Worker(member, WORKER) as worker, attacking(plan) as attack:
            while servicer.streams < 4:
                assert_calls_are_right(worker, 10)
    assert attack.sent >= 3


def test_resets_without_the_sequence_number_end_no_tcp_connection():
    """The connections are a ring's, as Gloo's: Linux takes a reset only if it has the next sequence number (RFC
    5961)."""
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda rank: RingWorker(RING, rank, RING_PORT), range(2))
        with first, second:
            table = Path("/proc/net/tcp").read_text()
            flows = tuple(f for f in parse_sockets(table) if is_of_ring(f))
            assert len(flows) == 4, "two connections, in both directions"
            with attacking(Plan("blind-resets", flows, seed=3)) as attack:
                for _ in range(50):
                    arrays = [np.ones(1 << 14, np.float32), np.ones(1 << 14, np.float32)]
                    list(threads.map(lambda w, a: w.all_reduce(a, CALL_S), (first, second), arrays))
                    np.testing.assert_array_equal(arrays, 2)
    assert attack.sent > 0


def is_of_ring(flow: Flow) -> bool:
    return RING_PORT in (flow.source_port, flow.destination_port) and flow.destination_port > 0
