# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel configuration: veth pairs, host interfaces, token buckets. Commands run in batches and in parallel: a program
per step would dominate the start of a network."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from netfold.testbed.network.errors import KernelError
from netfold.testbed.network.tools import ADMINISTRATOR, tool
from netfold.topologies.addressing import HostAddress

HOST_INTERFACE = "eth0"
HOST_QUEUE = 1000
"""Queue of a host's link, packets: Linux's default. A switch's queue is the link's `queue`."""

WITHOUT_OFFLOADS = tuple(f"{offload} off" for offload in ("rx", "tx", "sg", "tso", "gso", "gro"))
"""Options of `ethtool -K` with which frames on veth equal frames on a wire."""
_BURSTS = ("rx on", "tx on", "sg on", "tso on", "gso on", "tx-udp-segmentation on", "gro off")
_FRAME_OVERHEAD = 14
_RX_BYTES, _TX_BYTES = 0, 8
"""Columns of /proc/net/dev."""


@dataclass(frozen=True)
class VethPair:
    """A veth pair. `a` is in the root namespace, or eth0 of the host with shell `host_pid` and address `mac`."""

    a: str
    b: str
    host_pid: int | None = None
    mac: str | None = None


@dataclass(frozen=True)
class HostSetup:
    """A host's only interface. `gateway_known`: with a permanent ARP entry of the gateway. `bursts`: the switch takes
    bursts of packets whole."""

    address: HostAddress
    rate_bps: int
    delay_ms: float
    mtu: int
    gateway_known: bool
    bursts: bool
    interface: str = HOST_INTERFACE


def create_veth_pairs(pairs: Sequence[VethPair], mtu: int, timeout_s: float = 60.0) -> None:
    """Create all veth pairs; those in the root namespace are set up, without IPv6 and ARP."""
    _ip_batch("creating links", [_add(p, mtu) for p in pairs], timeout_s)
    outside = [end for p in pairs for end in ((p.b,) if p.host_pid else (p.a, p.b))]
    for interface in outside:
        _write(Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1")
    _ip_batch("starting links", [f"link set dev {i} arp off up" for i in outside], timeout_s)


def shape(interface: str, rate_bps: int, queue: int, delay_ms: float, mtu: int) -> str:
    """The tc commands for an interface's egress rate, queue (packets) and delay."""
    frame = mtu + _FRAME_OVERHEAD
    # 2 ms: timer events per frame are expensive where hosts and switches share processors.
    burst = max(3 * frame, rate_bps // 8 // 500)
    limit = max(queue * frame, burst)
    lines = f"qdisc add dev {interface} root handle 1: tbf rate {rate_bps}bit burst {burst} limit {limit}\n"
    if delay_ms > 0:
        lines += f"qdisc add dev {interface} parent 1:1 netem delay {delay_ms}ms limit {queue}\n"
    return lines


def shape_ports(commands: Iterable[str], timeout_s: float = 60.0) -> None:
    """Apply `shape` lines in the root namespace."""
    batch = "".join(commands)
    if batch:
        _finish("shaping links", _start([tool("tc"), "-batch", "-"], batch), timeout_s)


def set_up_hosts(hosts: Mapping[int, HostSetup], timeout_s: float = 60.0) -> None:
    """Configure the interface of each host in parallel; keys: pid of a process in its namespace."""
    deadline = time.monotonic() + timeout_s
    running = [
        (h, _start([tool("mnexec"), "-a", str(pid), "sh", "-es"], _host_script(h)))
        for pid, h in hosts.items()
    ]
    try:
        for setup, process in running:
            _finish(f"setting up host '{setup.address.name}'", process, deadline - time.monotonic())
    finally:
        for _, process in running:
            if process.poll() is None:
                process.kill()
                process.wait()


def set_link(interface: str, up: bool) -> None:
    _ip_batch(f"setting {interface}", [f"link set dev {interface} {'up' if up else 'down'}"], 10.0)


def is_up(interface: str) -> bool:
    """True with a carrier: neither end was set down."""
    shown = subprocess.run(
        [tool("ip"), "-o", "link", "show", "dev", interface],
        capture_output=True,
        text=True,
        timeout=10.0,
        check=False,
    )
    return "LOWER_UP" in shown.stdout


def byte_counts() -> dict[str, tuple[int, int]]:
    """Received and sent by each interface of this process's namespace, of which /sys need not be."""
    lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    rows = {name.strip(): counts.split() for name, _, counts in (line.partition(":") for line in lines)}
    return {name: (int(counts[_RX_BYTES]), int(counts[_TX_BYTES])) for name, counts in rows.items()}


def _add(pair: VethPair, mtu: int) -> str:
    if pair.host_pid is None:
        return f"link add name {pair.a} mtu {mtu} type veth peer name {pair.b} mtu {mtu}"
    inside = f"name {HOST_INTERFACE} mtu {mtu} address {pair.mac} netns {pair.host_pid}"
    return f"link add name {pair.b} mtu {mtu} type veth peer {inside}"


def _host_script(setup: HostSetup) -> str:
    """Without bursts offloads are off, so that frames on veth equal frames on a wire."""
    eth = setup.interface
    offloads = " ".join(_BURSTS if setup.bursts else WITHOUT_OFFLOADS)
    return f"""
PATH="$PATH:{ADMINISTRATOR}"
for f in all default; do echo 1 > /proc/sys/net/ipv6/conf/$f/disable_ipv6 || true; done 2>/dev/null
ethtool -K {eth} {offloads} >/dev/null
ip -batch - <<END
link set dev lo up
{_addressing(setup)}END
tc -batch - <<END
{shape(eth, setup.rate_bps, HOST_QUEUE, setup.delay_ms, setup.mtu)}END
"""


def _addressing(setup: HostSetup) -> str:
    """A host routes all packets over its gateway, those to its own rack included: switches are routers."""
    a, eth = setup.address, setup.interface
    if a.gateway_ip is None:
        return f"address add {a.ip}/{a.prefix.prefixlen} dev {eth}\nlink set dev {eth} up\n"
    neighbor = f"neigh replace {a.gateway_ip} lladdr {a.gateway_mac} dev {eth} nud permanent\n"
    return f"""\
address add {a.ip}/32 dev {eth}
link set dev {eth} up
route add {a.gateway_ip} dev {eth} scope link
route add default via {a.gateway_ip} dev {eth}
{neighbor if setup.gateway_known else ""}"""


def _ip_batch(what: str, lines: Sequence[str], timeout_s: float) -> None:
    if lines:
        _finish(what, _start([tool("ip"), "-batch", "-"], "\n".join(lines) + "\n"), timeout_s)


def _start(command: list[str], script: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it ended early: its output has the reason
        process.stdin.write(script)
        process.stdin.close()
    process.stdin = None  # communicate() only reads from here on
    return process


def _finish(what: str, process: subprocess.Popen[str], timeout_s: float) -> None:
    try:
        output, _ = process.communicate(timeout=max(timeout_s, 0.001))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise KernelError(what, "timed out") from None
    if process.returncode != 0:
        raise KernelError(what, output + _remedy(output))


def _remedy(output: str) -> str:
    if "qdisc kind is unknown" in output:
        return "\nthis kernel lacks the queueing discipline sch_tbf (rates) or sch_netem (delays)"
    return ""


def _write(path: Path, text: str) -> None:
    with contextlib.suppress(OSError):  # a kernel without IPv6
        path.write_text(text)
