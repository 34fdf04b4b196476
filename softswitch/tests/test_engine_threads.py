# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch process with two threads: each frame reaches the thread of its registers."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import pack
from running import PROGRAMS
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from softswitch.engine.steering_program import Step, steering_program
from softswitch.translate.steering import Check, Steering
from testnet import DEADLINE_S, Host, Namespace, SwitchProcess, needs_root, of_kind, packet_only, wait_for

SLOTS, LANES = 64, 32
LANES_PROGRAM = PROGRAMS / "lanes.json"
LOSS = 0.3
FLOWS = 40


def lanes_frame(slot: int, value: int = 1) -> bytes:
    return bytes(12) + b"\x88\xb5" + pack((slot, 16), (0, 16), *[(value, 32)] * LANES)


def slot_and_sum(frame: bytes) -> tuple[int, int]:
    return int.from_bytes(frame[14:16], "big"), int.from_bytes(frame[18:22], "big")


def stats(switch: SwitchProcess) -> dict[str, int]:
    with switch.control() as control:
        answer = control.request("stats")
    return {**answer["switch"], **answer["engine"]}


# ---- the kernel's program ----


def run_program(steps: tuple[Step, ...], frame: bytes, flow_hash: int = 0, tag: int = 0) -> int:
    """Runs the program as the kernel does, by the instructions that it uses."""
    at = value = 0
    while True:
        step = steps[at]
        at += 1
        if step.code in (0x20, 0x28, 0x30):
            special = {0xFFFFF020: flow_hash, 0xFFFFF030: tag}.get(step.k)
            start, size = step.k + 14, {0x20: 4, 0x28: 2, 0x30: 1}[step.code]
            if step.k >= 0xFFE00000:  # in the linear part, which may be the headers alone
                start = step.k - 0xFFE00000
                assert special is not None or start + size <= 14
            if special is None and start + size > len(frame):
                return 0
            value = int.from_bytes(frame[start : start + size], "big") if special is None else special
        elif step.code == 0x54:
            value &= step.k
        elif step.code == 0x74:
            value >>= step.k
        elif step.code == 0x15:
            at += step.jt if value == step.k else step.jf
        else:
            assert step.code == 0x16
            return value


BY_SLOT = Steering(15, (Check(12, 2, 0xFFFF, 0x88B5),))


@pytest.mark.parametrize("threads", [2, 4, 8])
def test_frames_with_the_field_go_to_the_thread_of_their_cells(threads: int) -> None:
    steps = steering_program(BY_SLOT, threads)
    for slot in range(256):
        assert run_program(steps, lanes_frame(slot), flow_hash=slot + 1) == slot // 16 % threads


@pytest.mark.parametrize("steering", [None, BY_SLOT])
def test_other_frames_go_by_their_flow(steering: Steering | None) -> None:
    steps = steering_program(steering, 4)
    for flow_hash in range(16):
        assert run_program(steps, bytes(60), flow_hash) == flow_hash % 4


def test_a_tagged_frame_goes_by_its_flow() -> None:
    assert run_program(steering_program(BY_SLOT, 2), lanes_frame(16), flow_hash=2, tag=1) == 0


def test_a_run_of_datagrams_goes_to_the_thread_of_its_first_one() -> None:
    """The kernel carries it as one: lengths, identification and checksums are the run's."""
    length = 8 + 2
    checks = (Check(12, 2, 0xFFFF, 0x0800), Check(16, 2, 0xFFFF, 20 + length), Check(38, 2, 0xFFFF, length))
    steps = steering_program(Steering(43, checks), 4)
    for slot in range(0, 256, 16):
        for count in (1, 16):
            run = IP(id=slot, flags="DF", proto=17, len=20 + 8 + count * 2) / UDP(len=8 + count * 2)
            frame = bytes(Ether() / run / Raw(struct.pack("!H", slot) * count))
            assert run_program(steps, frame, flow_hash=slot // 16 + 1) == slot // 16 % 4
        arp = bytes(Ether(type=0x0806) / Raw(frame[14:]))
        assert run_program(steps, arp, flow_hash=slot // 16 + 1) == (slot // 16 + 1) % 4


# ---- the process ----


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    made = Namespace(2, queues=2)
    yield made
    made.close()


@pytest.fixture
def switch(namespace: Namespace, start_switch, kind: str) -> SwitchProcess:
    ports = of_kind(kind, ("-i", "1@sw1", "-i", "2@sw2", "--threads", 2), queues=2)
    return start_switch(namespace, LANES_PROGRAM, *ports)


def add_once_each(host: Host, value: int = 1) -> dict[int, int]:
    for slot in range(SLOTS):
        host.send(lanes_frame(slot, value))
    return dict(slot_and_sum(frame) for frame in host.receive_many(SLOTS))


@pytest.mark.root
@needs_root[1]
def test_two_threads_add_up_all_slots(switch: SwitchProcess, hosts: list[Host], kind: str) -> None:
    assert set(add_once_each(hosts[0]).values()) == {1}
    assert set(add_once_each(hosts[1], 10).values()) == {11}
    if kind == "packet":  # a device deals frames to its queues by their flows
        assert stats(switch)["handed_over"] == 0, "the kernel gives each frame to its thread"
    ports = [switch.port(number)["switch"] for number in (1, 2)]
    assert [port["rx_packets"] for port in ports] == [SLOTS] * 2
    assert [port["tx_packets"] for port in ports] == [SLOTS] * 2


@pytest.mark.root
@needs_root[1]
def test_threads_share_a_link_that_comes_back(
    switch: SwitchProcess, namespace: Namespace, hosts: list[Host], kind: str
) -> None:
    add_once_each(hosts[0])
    namespace.remove_link(1)
    wait_for(lambda: not switch.port(1)["up"], "the port is down")
    namespace.add_link(1)
    wait_for(lambda: switch.port(1)["oper_up"], "the port is up again")
    assert set(add_once_each(namespace.host(1)).values()) == {2}
    assert kind != "packet" or stats(switch)["handed_over"] == 0


def wait_for_answers(host: Host, length: int = 0) -> None:
    """Wait until the switch has heard of a change of the link, and takes frames that are longer by `length`."""
    frame = lanes_frame(0, 0) + bytes(length)
    deadline = time.monotonic() + DEADLINE_S
    host.send(frame)
    while host.receive(0.05) is None:
        assert time.monotonic() < deadline, "no frame comes back"
        host.send(frame)
    while host.receive(0.05) is not None:
        pass


def assert_no_handover(switch: SwitchProcess, host: Host) -> None:
    before = stats(switch)["handed_over"]
    add_once_each(host)
    assert stats(switch)["handed_over"] == before, "the kernel gives each frame to its thread"


@packet_only
@pytest.mark.slow
@pytest.mark.root
@needs_root[1]
def test_a_link_that_goes_and_comes_back_at_once_keeps_the_order_of_the_threads(
    switch: SwitchProcess, namespace: Namespace
) -> None:
    """The kernel's group of a port numbers the sockets as they join, and a link may appear between two of them."""
    for _ in range(30):
        namespace.remove_link(1)
        namespace.add_link(1)
        host = namespace.host(1)
        try:
            wait_for_answers(host)
            assert_no_handover(switch, host)
        finally:
            host.close()


@pytest.mark.root
@needs_root[1]
def test_a_larger_mtu_keeps_the_order_of_the_threads(
    namespace: Namespace, hosts: list[Host], start_switch
) -> None:
    process = start_switch(namespace, LANES_PROGRAM, "-i", "1@sw1", "-i", "2@sw2", "--threads", 4)
    for end in ("sw", "h"):
        namespace.run("ip", "link", "set", f"{end}1", "mtu", "9000")
    wait_for_answers(hosts[0], 8000)
    assert_no_handover(process, hosts[0])


@pytest.mark.root
@needs_root[1]
def test_all_threads_follow_a_smaller_mtu(
    namespace: Namespace, hosts: list[Host], start_switch, kind: str
) -> None:
    ports = of_kind(kind, ("-i", "1@sw1", "-i", "2@sw2", "--threads", 2), queues=2)
    process = start_switch(namespace, *ports, program="wire")
    namespace.run("ip", "link", "set", "sw2", "mtu", 500)
    namespace.run("ip", "link", "set", "sw2", "down")
    wait_for(lambda: not process.port(2)["oper_up"], "the switch has heard of both")
    for source in range(FLOWS):
        hosts[0].send(bytes(Ether() / IP() / UDP(sport=1000 + source) / bytes(600)))
    wait_for(lambda: process.port(1)["link"]["rx_packets"] == FLOWS, "the frames")
    link = process.port(2)["link"]
    assert (link["tx_oversize"], link["tx_packets"], link["tx_dropped"]) == (FLOWS, 0, 0)


@packet_only
@pytest.mark.root
@needs_root[1]
def test_faults_of_a_seed_repeat(switch: SwitchProcess, hosts: list[Host]) -> None:
    def received() -> int:
        return int(switch.port(1)["link"]["rx_packets"])

    def passed() -> list[int]:
        with switch.control() as control:
            control.request("set-faults", port=1, direction="in", loss=LOSS, seed=5)
        before = received()
        for slot in range(SLOTS):
            hosts[0].send(lanes_frame(slot, 0))
        wait_for(lambda: received() >= before + SLOTS, "the frames")
        with switch.control() as control:
            control.request("set-faults", port=1, direction="in")
        hosts[0].send(lanes_frame(0, 0))
        hosts[0].send(lanes_frame(16, 0))
        left: list[int] = []
        while left.count(0) < 1 or left[-2:] not in ([0, 16], [16, 0]):
            frame = hosts[0].receive()
            assert frame is not None
            left.append(slot_and_sum(frame)[0])
        return sorted(left)

    first = passed()
    assert len(first) < SLOTS, "some were lost"
    assert passed() == first


def test_a_port_on_a_socket_is_read_by_the_first_thread_which_hands_over(start_switch) -> None:
    host, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    host.settimeout(DEADLINE_S)
    socket_port = ("--socket", f"1={end.fileno()}")
    process = start_switch(None, LANES_PROGRAM, *socket_port, "--threads", 2, pass_fds=[end.fileno()])
    with host, end:
        for value in (1, 2):
            for slot in range(SLOTS):
                host.send(lanes_frame(slot, value))
            left = dict(slot_and_sum(host.recv(4096)) for _ in range(SLOTS))
            assert left == dict.fromkeys(range(SLOTS), {1: 1, 2: 3}[value])
    assert stats(process)["handed_over"] == SLOTS


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--threads", 3), "expected a power of two, 1..16"),
        (("--threads", 2, "--port-rate", "1=100mbit"), "leave out --port-rate"),
        ((PROGRAMS / "state.json", "--threads", 2), "2 threads cannot share the program's registers"),
    ],
)
def test_what_threads_cannot_do_is_said_at_the_start(
    arguments: tuple[object, ...], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match="the switch did not start") as failed:
        SwitchProcess(None, tmp_path, *arguments)
    said = " ".join(str(failed.value).replace("│", " ").split())
    assert reason in said
