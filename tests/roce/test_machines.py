# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Linux's own RDMA endpoints, in virtual machines, as workers: their RC connections are added up by the leaves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

from netfold.controller.planning.plan import Tree
from netfold.protocol.wire import LaneArray
from netfold.testbed.counters import read_verdicts
from netfold.testbed.errors import RunError
from netfold.testbed.network.faults import Faults, request
from netfold.testbed.roce.bandwidth import SEND, WRITE, Messages, plain_connection, ring
from netfold.testbed.roce.lab import CallReport, Lab
from netfold.testbed.roce.packages import QEMU
from netfold.traffic.scapy_roce import lanes_of
from tests.dataplane.frames import Ip
from tests.dataplane.rc import NAK
from tests.dataplane.roce_frames import CNP, ONLY, Rc, acknowledgment, roce
from tests.slot_oracle import add_saturating
from tests.traffic.off_path import ERRORS, FRAGMENTATION_NEEDED, NEXT_MTU, UNREACHABLE, Flow, Plan, attacking

pytestmark = [
    pytest.mark.machines,
    pytest.mark.skipif(
        not all(map(shutil.which, (QEMU, "tshark"))),
        reason=f"needs {QEMU} and tshark: make test-roce installs them",
    ),
]

STEP_S = 300.0
ROCE_PORT = 4791


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """For each test machines of its own: a job that does not end takes its rate from those of later tests."""
    with Lab(lanes=getattr(request, "param", 256)) as one:
        yield one


def _wait_for_calls(lab: Lab, job: str, host: str, calls: int) -> None:
    """Until the worker has done so many."""
    count = f"$(cat /tmp/{job} 2> /dev/null | wc -l)"
    lab.machines[host].run(f"until [ {count} -ge {calls} ]; do sleep 0.1; done", 120.0)


def _start_endless(lab: Lab, job: str, flags: str = "") -> None:
    """Workers that call until they are killed, so that what happens beside them does so while they call."""
    lab.start(job, f"{flags} --sizes 65536 --iterations 1000000 --timeout {STEP_S}")
    for host in lab.hosts:
        _wait_for_calls(lab, job, host, 1)


def _calls(lab: Lab, job: str) -> dict[str, list[CallReport]]:
    """Returns the reports of each worker so far."""
    told = {host: lab.machines[host].run(f"cat /tmp/{job}", 60.0).splitlines() for host in lab.hosts}
    return {host: [CallReport(**json.loads(line)) for line in lines] for host, lines in told.items()}


def _assert_more_right_calls(lab: Lab, job: str, calls: int) -> None:
    """All workers make so many more calls, and none of them was ever wrong."""
    for host, made in _calls(lab, job).items():
        _wait_for_calls(lab, job, host, len(made) + calls)
    for host, made in _calls(lab, job).items():
        assert not any(c.wrong for c in made), host


def _assert_right(calls: dict[str, list[CallReport]], hosts: int, sizes: list[int]) -> None:
    assert len(calls) == hosts
    for host, made in calls.items():
        assert [c.bytes for c in made] == sizes, host
        assert not any(c.wrong for c in made), host


def test_arrays_add_up_at_every_machine(lab: Lab):
    sizes = [4, 4096, 65536, 262144]
    lab.submit("sizes")
    calls = lab.reduce("sizes", f"--sizes {','.join(map(str, sizes))} --timeout {STEP_S}", STEP_S)
    _assert_right(calls, len(lab.hosts), sizes)
    verdicts = read_verdicts(lab.testbed.net)
    assert any(v.get("result_sent", 0) for v in verdicts.values()), "switches added up"


def test_floats_share_exponents_by_the_headers(lab: Lab):
    lab.submit("floats", numerics={"mode": "block"})
    calls = lab.reduce("floats", f"--float --sizes 65536,65536 --timeout {STEP_S}", STEP_S)
    _assert_right(calls, len(lab.hosts), [65536, 65536])


def test_lost_packets_are_sent_again_by_the_devices_and_no_sum_is_wrong(lab: Lab):
    net = lab.testbed.net
    before = lab.counters()
    for host in lab.hosts:
        leaf = lab.testbed.fabric.attachment(host)
        net.set_faults(host, leaf, Faults(loss=0.02, seed=3))
        net.set_faults(leaf, host, Faults(loss=0.02, seed=4))
    try:
        lab.submit("lossy")
        calls = lab.reduce("lossy", f"--sizes 65536 --iterations 3 --timeout {STEP_S}", STEP_S)
    finally:
        net.clear_faults()
    _assert_right(calls, len(lab.hosts), [65536] * 3)
    after = lab.counters()
    sent_again = sum(after[h]["completer_retry_err"] - before[h]["completer_retry_err"] for h in lab.hosts)
    gaps = sum(after[h]["out_of_seq_request"] - before[h]["out_of_seq_request"] for h in lab.hosts)
    assert sent_again + gaps > 0, "something was lost"


def test_psns_wrap_and_connections_that_are_worn_begin_anew(lab: Lab):
    """A call has 65 packets or a few more: PSNs wrap in the first call of each epoch, which three calls wear out."""
    lab.submit("wrapping")
    flags = f"--first-psn {2**24 - 20} --epoch-packets 220 --sizes 65536 --iterations 6 --timeout {STEP_S}"
    calls = lab.reduce("wrapping", flags, STEP_S)
    _assert_right(calls, len(lab.hosts), [65536] * 6)
    assert all(made[-1].epochs >= 2 for made in calls.values())


@pytest.mark.parametrize("lab", [64], indirect=True)
def test_a_neighbor_forges_packets_of_a_job_of_float32_and_changes_nothing(lab: Lab):
    """With the right addresses, queue pairs and PSNs, which no other host knows; but from another port."""
    net = lab.testbed.net
    sender, receiver = lab.hosts[:2]
    leaf = lab.testbed.fabric.attachment(sender)
    forger = next(h for h in lab.testbed.workers if h not in lab.hosts and h in net.fabric.ports[leaf])
    lab.submit("floats", numerics={"mode": "float32"})
    _start_endless(lab, "floats", "--float")
    before = read_verdicts(net)[leaf].get("unadmitted", 0)
    forged = [
        frame for a, b in ((sender, receiver), (receiver, sender)) for frame in _forged(lab, forger, a, b)
    ]
    sent = net.run(forger, [sys.executable, "-c", _SEND, *(f.hex() for f in forged)], 60.0)
    assert sent.returncode == 0, sent.stderr
    _assert_more_right_calls(lab, "floats", 3)
    assert read_verdicts(net)[leaf].get("unadmitted", 0) - before >= len(forged)


def test_forged_icmp_fails_no_call_and_lowers_no_path_mtu(lab: Lab):
    """Linux takes an ICMP error as rxe's by the quoted source port, 4791. The first "fragmentation needed" would stop
    rxe for ten minutes. Leaves drop what quotes a job's RoCE packets; other ICMP reaches the machines."""
    net = lab.testbed.net
    forger = next(h for h in lab.testbed.workers if h not in lab.hosts)
    members = [str(net.addressing.hosts[h].ip) for h in lab.hosts]
    flows = tuple(Flow(a, b, ROCE_PORT, ROCE_PORT) for a, b in permutations(members, 2))
    sources = (*members, str(net.addressing.hosts[forger].ip))
    quoted = Plan("icmp", flows, sources, per_second=200, kinds=ERRORS)
    path_mtus = replace(quoted, kinds=((UNREACHABLE, FRAGMENTATION_NEEDED),))
    any_message = replace(quoted, kinds=(), seed=1)
    lab.submit("attacked")
    _start_endless(lab, "attacked")
    popen = net.hosts[forger].popen
    with attacking(path_mtus, popen), attacking(quoted, popen):
        _assert_more_right_calls(lab, "attacked", 3)
        counted = read_verdicts(net)
    assert all(counted[lab.testbed.fabric.attachment(host)]["malformed"] > 0 for host in lab.hosts), (
        "no attack reached a switch"
    )
    for host in lab.hosts:
        assert not any(_icmp_errors(lab, host).values()), f"an error that quotes RoCE reached {host}"
    with attacking(any_message, popen):
        _assert_more_right_calls(lab, "attacked", 3)
    for machine in lab.machines.values():
        assert str(NEXT_MTU) not in "".join(machine.run(f"ip route get {to}", 60.0) for to in members)


def _icmp_errors(lab: Lab, host: str) -> dict[str, int]:
    """ICMP errors that the machine has received, by the kernel's name of their type (RFC 1213, icmp group)."""
    names, values = (
        line.split()[1:] for line in lab.machines[host].run("grep ^Icmp: /proc/net/snmp", 60.0).splitlines()
    )
    received = dict(zip(names, map(int, values), strict=True))
    return {name: received[name] for name in ("InDestUnreachs", "InTimeExcds", "InParmProbs")}


_SEND = """
import socket, sys
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("eth0", 0))
for frame in sys.argv[1:]:
    link.send(bytes.fromhex(frame))
"""


def _forged(lab: Lab, forger: str, source: str, to: str) -> Iterator[bytes]:
    """To every queue pair of the worker at `to`, SENDs, ACKs, NAKs and CNPs around the PSNs that it is at, as from
    `source`."""
    known = lab.testbed.net.addressing.hosts
    addresses = Ip(src=str(known[source].ip), dst=str(known[to].ip))
    link = bytes.fromhex(f"{known[forger].gateway_mac}{known[forger].mac}".replace(":", ""))
    pairs = lab.machines[to].run("rdma resource show qp | grep netfold-roce", 60.0).splitlines()
    assert len(pairs) == 2
    for line in pairs:
        at = dict(re.findall(r"(lqpn|rq-psn|sq-psn) (\d+)", line))
        for psn in (int(at[which]) + ahead for which in ("rq-psn", "sq-psn") for ahead in range(0, 64, 4)):
            send = Rc(ONLY, int(at["lqpn"]), psn % (1 << 24), [1] * 64)
            yield link + roce(send, addresses)[12:]
            yield link + acknowledgment(send.qpn, send.psn, addresses)[12:]
            yield link + acknowledgment(send.qpn, send.psn, addresses, syndrome=NAK)[12:]
            yield link + roce(Rc(CNP, send.qpn, send.psn, payload=bytes(16), congestion=0x40), addresses)[12:]


def test_plain_connections_are_not_disturbed_by_a_job(lab: Lab):
    for job, program in (("send", SEND), ("write", WRITE)):
        lab.submit(job)
        running = lab.start(job, f"--sizes 65536 --iterations 3 --timeout {STEP_S}")
        assert plain_connection(lab, program=program) > 0
        _assert_right(lab.finish(running, STEP_S), len(lab.hosts), [65536] * 3)


def test_an_unmodified_program_on_admitted_connections_is_added_up(lab: Lab, tmp_path: Path):
    """perftest's. What leaves take in and send out is compared. Its lanes are any numbers, so that many sums are cut
    somewhere, which depends on the order of arrival: all lanes of a packet are as one order makes them."""
    fabric, net = lab.testbed.fabric, lab.testbed.net
    leaves = sorted({fabric.attachment(h) for h in lab.hosts})
    [tree] = lab.submit("perftest", scheme="switchml", slots=256).trees
    messages = Messages(bytes=8192, count=40, in_flight=8)
    for leaf in leaves:
        request(net.switches[leaf].control_socket, [{"op": "capture", "folder": str(tmp_path / leaf)}])
    rates = ring(lab, "perftest", messages, STEP_S)
    for leaf in leaves:
        request(net.switches[leaf].control_socket, [{"op": "capture", "folder": None}])
    assert set(rates) == set(lab.hosts)
    packets = messages.count * messages.bytes // 1024
    for capture in tmp_path.glob("*/*.pcap"):
        _assert_well_formed(capture)

    def passed(host: str, way: str) -> LaneArray:
        leaf = fabric.attachment(host)
        return _sent(tmp_path / leaf / f"{net.interface(leaf, host)}_{way}.pcap", packets)

    own = {h: passed(h, "in") for h in lab.hosts}
    sums = _sums(tree, tree.root, own)
    for host in lab.hosts:
        came = passed(host, "out")
        right = np.any([(came == some).all(axis=1) for some in sums], axis=0)
        assert right.all(), f"{host}: {packets - right.sum()} of {packets} packets are no sum"
        assert not np.array_equal(came, own[host])


def _assert_well_formed(capture: Path) -> None:
    """RoCE frames in the eyes of others: scapy computes the same ICRC, and Wireshark reads the same and finds nothing
    malformed."""
    fields = ("infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "_ws.malformed")
    shown = [word for name in fields for word in ("-e", name)]
    guess = ("--disable-protocol", "rpcordma")  # of what lies behind a SEND's header
    command = ["tshark", *guess, "-r", capture, "-Y", "udp.dstport == 4791", "-T", "fields", *shown]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    read = []
    for frame in RawPcapReader(str(capture)):
        packet = Ether(frame[0])
        if packet.haslayer(BTH):
            bth = packet[BTH]
            read.append(f"{bth.opcode}\t{bth.dqpn:#08x}\t{bth.psn}\t")
            bth.icrc = None
            assert bytes(packet) == frame[0]
    assert done.stdout.splitlines() == read


def _sums(tree: Tree, node: str, own: Mapping[str, LaneArray]) -> list[LaneArray]:
    """Returns the sums that `node` sends up, or down from the root: (packets, lanes) for each order in which its
    children's come."""
    children = [_sums(tree, child, own) for child in tree.children(node)]
    orders = (parts for chosen in product(*children) for parts in permutations(chosen))
    return [reduce(add_saturating, parts) for parts in orders] if children else [own[node]]


def _sent(capture: Path, packets: int) -> LaneArray:
    """Lanes of the SENDs in a capture, in the order of their PSNs; (packets, lanes)."""
    found: dict[int, tuple[int, ...]] = {}
    for frame in RawPcapReader(str(capture)):
        packet = Ether(frame[0])
        if packet.haslayer(BTH) and (lanes := lanes_of(packet)) is not None:
            assert found.setdefault(packet[BTH].psn, lanes) == lanes, "sent again with other contents"
    assert len(found) == packets
    one = next(iter(found))
    return np.array([found[p] for p in sorted(found, key=lambda psn: (psn - one + 2**23) % 2**24)], np.int32)


def test_a_parameter_server_adds_up_what_roce_workers_send(lab: Lab):
    plan = lab.submit("served", parameter_servers=1, scheme="none")
    assert all(lab.testbed.fabric.is_host(t.root) for t in plan.trees)
    calls = lab.reduce("served", f"--sizes 4096,65536 --timeout {STEP_S}", STEP_S)
    _assert_right(calls, len(lab.hosts), [4096, 65536])


def test_roce_jobs_and_a_udp_job_share_a_fabric(lab: Lab):
    """A RoCE job at each leaf (a machine has one serial port, so one agent), and one in UDP on hosts beside them."""
    udp = lab.testbed.submit(
        "udp",
        ["--workload", "sizes", "--sizes", "65536", "--iterations", "5"],
        [h for h in lab.testbed.workers if h not in lab.hosts],
        rate=20,
    )
    jobs = {"one": lab.hosts[:2], "two": lab.hosts[2:]}
    for name, hosts in jobs.items():
        lab.submit(name, hosts, rate=20)
    flags = f"--sizes 65536 --iterations 3 --timeout {STEP_S}"
    running = [lab.start(name, flags, hosts) for name, hosts in jobs.items()]
    for job in running:
        _assert_right(lab.finish(job, STEP_S), len(job.answers), [65536] * 3)
    udp.result(STEP_S)


def test_a_cable_that_is_pulled_moves_the_job_and_no_sum_is_wrong(lab: Lab):
    plan = lab.submit("moved", scheme="switchml")
    [spine] = {n for e in plan.trees[0].edges for n in e.path if n.startswith("spine")}
    _start_endless(lab, "moved")
    before = _calls(lab, "moved")
    lab.testbed.fail(f"leaf1-{spine}")
    try:
        until = time.monotonic() + STEP_S
        while not all(
            made[-1].epochs > before[host][0].epochs for host, made in _calls(lab, "moved").items()
        ):
            assert time.monotonic() < until, "the job has not moved"
        _assert_more_right_calls(lab, "moved", 3)
    finally:
        lab.testbed.restore(f"leaf1-{spine}")


def test_a_worker_or_its_machine_that_is_killed_ends_the_job_with_a_reason_at_all_others(lab: Lab):
    victim = lab.machines[lab.hosts[-1]]
    for name in ("worker", "machine"):
        lab.submit(name, lease_ms=3000)
        running = lab.start(name, "--sizes 65536 --iterations 1000000 --timeout 60")
        _wait_for_calls(lab, name, victim.host, 1)
        if name == "worker":
            victim.run("killall -9 netfold-roce", 60.0)
            with pytest.raises(RunError, match=r"job ended: .*lease|ended with exit code 137"):
                lab.finish(running, 120.0)
        else:
            victim.close()
        for host in lab.hosts[:-1]:
            answer = running.answers[host].result(timeout=60)
            assert (answer.code, "job ended" in answer.output) == (1, True), answer.output[-300:]
        for agent in running.agents:
            agent.join(60.0)
