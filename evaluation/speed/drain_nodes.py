# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What drain measures: a switch and a parameter server, each with sockets that fill it and one that sees its last
results."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import socket
import struct
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

from scapy.layers.inet import IP, UDP, in4_pseudoheader
from scapy.layers.l2 import Ether
from scapy.utils import checksum

from netfold.evaluation.speed import switch_targets
from netfold.evaluation.speed.host_pps import PORT, SERVER, assignment
from netfold.evaluation.speed.switch_loads import ETHERNET_IP_UDP, SLOTS, WORKERS, SwitchLoad, aggregation
from netfold.protocol.wire import Kind, Packet, mtu_for, packet_bytes
from netfold.testbed.errors import RunError
from netfold.testbed.network.blueprint import DEFAULT_MTU
from netfold.traffic.membership.assignment import TreeAssignment
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer

RUN = 16
LONGEST_RUN = 32  # of a node's results: SS_RUN_FRAMES in segments.h
ROUND_RUNS = SLOTS // RUN
READY_TIMEOUT_S = 60.0
RING_HEADERS = 128  # bytes at most, before a frame of a packet socket's ring
BUFFERS = 16 << 20  # bytes of a server's socket
TAG_AT, SLOT_AT = 4, 8  # of a packet

UDP_SEGMENT, UDP_GRO = 103, 104  # not in Python's socket module
ATTACH_FILTER, TIMESTAMP_NS = 26, 35
ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING, PACKET_QDISC_BYPASS, PACKET_VNET_HDR = 3, 263, 23, 20, 15
LOAD_WORD, LOAD_HALF, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x20, 0x28, 0x15, 0x35, 0x06
NEEDS_CHECKSUM, GSO_UDP_L4 = 1, 5


class FilledNode(ABC):
    """A running node of `threads` threads that adds up packets of four workers. `pid`: its process."""

    pid: int

    def __init__(self, lanes: int, threads: int, results: socket.socket, at: int) -> None:
        """`results` receives what the node sends to the first worker, with the packet at byte `at`."""
        self._lanes, self._threads, self._results, self._at = lanes, threads, results, at
        self._rounds = 0
        results.setsockopt(socket.SOL_SOCKET, TIMESTAMP_NS, 1)
        results.setblocking(False)
        filter_results(results)

    @abstractmethod
    def rounds_that_fit(self) -> int:
        """Uses of all slots whose packets the node's sockets hold."""

    @abstractmethod
    def send(self, worker: int, tag: int, slot: int) -> None:
        """A run of a worker's packets, from `slot` on."""

    @abstractmethod
    def lost(self) -> bool:
        """Whether the node has not received all that was sent."""

    def fill(self) -> int:
        """Returns the number of packets."""
        rounds = self.rounds_that_fit()
        first = Packet(Kind.GRADIENT, 1, 1, self._rounds, 0, 0, (0,) * self._lanes)
        tag = int.from_bytes(first.pack()[TAG_AT : TAG_AT + 4])
        filter_results(self._results, self._at, tag + rounds - 1, SLOTS - LONGEST_RUN * self._threads)
        for number in range(rounds):
            for slot in range(0, SLOTS, RUN):
                for worker in range(WORKERS):
                    self.send(worker, tag + number, slot)
        self._rounds += rounds
        return rounds * SLOTS * WORKERS

    def last_result(self) -> float | None:
        """When the kernel received the newest result of the last runs, as CLOCK_REALTIME counts. None: it has none."""
        newest = None
        while True:
            try:
                _, control, _, _ = self._results.recvmsg(64, 256)
            except BlockingIOError:
                return newest
            for level, kind, data in control:
                if (level, kind) == (socket.SOL_SOCKET, TIMESTAMP_NS):
                    seconds, nanoseconds = struct.unpack("=qq", data)
                    newest = seconds + nanoseconds * 1e-9


def filter_results(sock: socket.socket, at: int = 0, tag: int | None = None, first_slot: int = 0) -> None:
    """Lets the socket receive datagrams alone whose first packet has this tag and a slot of at least `first_slot`; or
    none."""
    steps = [(RETURN, 0, 0, 0)]
    if tag is not None:
        steps = [
            (LOAD_WORD, 0, 0, at + TAG_AT),
            (JUMP_EQUAL, 0, 3, tag),
            (LOAD_HALF, 0, 0, at + SLOT_AT),
            (JUMP_AT_LEAST, 0, 1, first_slot),
            (RETURN, 0, 0, 0xFFFF),
            (RETURN, 0, 0, 0),
        ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    sock.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, program)


# ---- a switch ------------------------------------------------------------------------------------


class FilledSwitch(FilledNode):
    """softswitch between four veth links, whose other ends are in this namespace."""

    def __init__(self, lanes: int, threads: int, pid: int, load: SwitchLoad, stack: ExitStack) -> None:
        self.pid = pid
        self._ports = [stack.enter_context(packet_socket(f"h{port}")) for port in range(1, WORKERS + 1)]
        for sock in self._ports:
            sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self._runs = [run_of_frames(frame) for frame in load.frames]
        results = stack.enter_context(packet_socket("h1"))
        super().__init__(lanes, threads, results, ETHERNET_IP_UDP)

    def rounds_that_fit(self) -> int:
        """A port's ring has 1,024 frames, or 32 MiB: the next power of two for each run."""
        frame = 1 << (len(self._runs[0]) + RING_HEADERS).bit_length()
        return (min(1024, (32 << 20) // frame) - 1) // ROUND_RUNS

    def send(self, worker: int, tag: int, slot: int) -> None:
        run = self._runs[worker]
        at = 10 + ETHERNET_IP_UDP
        for number in range(RUN):
            struct.pack_into("!IH", run, at + TAG_AT, tag, slot + number)
            at += packet_bytes(self._lanes)
        self._ports[worker].send(run)

    def lost(self) -> bool:
        line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if "h1:" in line)
        received, runs = map(int, line.split()[1:3])
        return received - ETHERNET_IP_UDP * runs != self._rounds * SLOTS * packet_bytes(self._lanes)


@contextmanager
def switch(lanes: int, threads: int) -> Iterator[FilledNode]:
    """Raises RunError."""
    load = aggregation(lanes)
    with (
        ExitStack() as stack,
        tempfile.TemporaryDirectory() as folder,
        switch_targets.namespace(
            f"nfdrain{os.getpid()}", runs=True, mtu=max(DEFAULT_MTU, mtu_for(lanes))
        ) as space,
    ):
        for port in range(1, WORKERS + 1):
            switch_targets.run("ip", "-n", space, "link", "set", f"h{port}", "netns", os.getpid())
            switch_targets.run("sysctl", "-qw", f"net.ipv6.conf.h{port}.disable_ipv6=1")
            switch_targets.run("ip", "link", "set", f"h{port}", "up")
        options = ("--gso", "--threads", str(threads))
        running = stack.enter_context(switch_targets.softswitch(space, load, Path(folder), *options))
        yield FilledSwitch(lanes, threads, running.pid, load, stack)


def packet_socket(interface: str) -> socket.socket:
    """One that receives nothing until filter_results says what."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    filter_results(sock)
    for option in (PACKET_IGNORE_OUTGOING, PACKET_QDISC_BYPASS):
        sock.setsockopt(SOL_PACKET, option, 1)
    sock.bind((interface, ETH_P_ALL))
    return sock


def run_of_frames(frame: bytes) -> bytearray:
    """A run of equal frames as one that the kernel carries, behind a virtio_net_hdr (linux/virtio_net.h)."""
    headers, payload = Ether(frame[:ETHERNET_IP_UDP]), frame[ETHERNET_IP_UDP:]
    ip, udp = headers[IP], headers[UDP]
    udp.len = len(udp) + RUN * len(payload)
    ip.len = len(ip) - len(udp) + udp.len
    del ip.chksum
    udp.chksum = ~checksum(in4_pseudoheader(socket.IPPROTO_UDP, ip, udp.len)) & 0xFFFF
    offload = struct.pack(
        "=BBHHHH", NEEDS_CHECKSUM, GSO_UDP_L4, ETHERNET_IP_UDP, len(payload), ETHERNET_IP_UDP - 8, 6
    )
    return bytearray(offload + bytes(headers) + RUN * payload)


# ---- a parameter server --------------------------------------------------------------------------


def worker_address(worker: int) -> str:
    return f"127.88.0.{worker + 1}"


class FilledServer(FilledNode):
    """A process that runs a parameter server on the loopback, with four workers and no switch."""

    def __init__(self, lanes: int, threads: int, stack: ExitStack) -> None:
        context = multiprocessing.get_context("spawn")
        ready, self._ended = context.Event(), context.Event()
        self._answer, there = context.Pipe(duplex=False)
        process = context.Process(target=serve, args=(lanes, threads, ready, self._ended, there), daemon=True)
        process.start()
        stack.callback(process.join, READY_TIMEOUT_S)
        stack.callback(self._ended.set)
        if not ready.wait(READY_TIMEOUT_S):
            raise RunError(f"the parameter server did not start within {READY_TIMEOUT_S:g} s")
        assert process.pid is not None
        self.pid = process.pid
        self._workers = [stack.enter_context(worker_socket(worker)) for worker in range(WORKERS)]
        self._packets = [
            bytearray(Packet(Kind.GRADIENT, 1, 1, 0, 0, worker, tuple(range(lanes))).pack() * RUN)
            for worker in range(WORKERS)
        ]
        super().__init__(lanes, threads, self._workers[0], 8)  # a filter sees the UDP header

    def rounds_that_fit(self) -> int:
        """A run takes at most twice its bytes."""
        return max(1, 2 * BUFFERS // (2 * WORKERS * ROUND_RUNS * len(self._packets[0])))

    def send(self, worker: int, tag: int, slot: int) -> None:
        packets, size = self._packets[worker], packet_bytes(self._lanes)
        for number in range(RUN):
            struct.pack_into("!IH", packets, number * size + TAG_AT, tag, slot + number)
        control = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", size))]
        self._workers[worker].sendmsg([packets], control)

    def lost(self) -> bool:
        self._ended.set()
        if not self._answer.poll(READY_TIMEOUT_S):
            raise RunError(f"the parameter server did not end within {READY_TIMEOUT_S:g} s")
        received: int = self._answer.recv()
        return received != self._rounds * SLOTS * WORKERS


@contextmanager
def server(lanes: int, threads: int) -> Iterator[FilledNode]:
    """Raises RunError."""
    with ExitStack() as stack:
        yield FilledServer(lanes, threads, stack)


def worker_socket(worker: int) -> socket.socket:
    """One that sends runs, and receives nothing until filter_results says what: whole runs."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    filter_results(sock)
    sock.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    sock.bind((worker_address(worker), PORT))
    sock.connect((SERVER, PORT))
    return sock


def serve(lanes: int, threads: int, ready: Event, ended: Event, answer: Connection) -> None:
    """Sends at the end the number of packets received."""
    tree = TreeAssignment(1, 1.0, SLOTS, SLOTS // 2, 0, SERVER, tuple(range(WORKERS)))
    job = replace(assignment(lanes), trees=(tree,))
    replies = [Address(worker_address(worker), PORT) for worker in range(WORKERS)]
    running = ParameterServer(job, SERVER, replies, threads=threads, buffers=BUFFERS)
    serving = threading.Thread(target=running.serve)
    serving.start()
    ready.set()
    ended.wait()
    running.stop()
    serving.join()
    running.close()
    answer.send(int(running.verdicts.sum()))
