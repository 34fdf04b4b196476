# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Files that make a bare server an aggregation node: systemd units, and scripts that set up its network cards."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netfold.controller.switches.tables import CPU_PORT
from netfold.protocol.constants import PORT_FIRST, PORT_LAST
from netfold.protocol.environment import Variable
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, FRAMING_BYTES, packet_bytes

_OFFLOADS = ("rx", "tx", "sg", "gso", "tso", "gro", "rx-udp-gro-forwarding", "tx-udp-segmentation")
"""Runs of packets cross the card and the kernel as one frame, both ways (docs/decisions/0041)."""
_OFFLOADS_OF_A_HOST = tuple(name for name in _OFFLOADS if name != "rx-udp-gro-forwarding")

_SCRIPT_HEAD = """#!/bin/sh
# Sets up the network cards of this server. What a card does not have is named and left.
set -u
try() { "$@" 2>/dev/null || echo "not here: $*"; }
largest_ring() { ethtool -g "$1" 2>/dev/null | awk '/^RX:/ {print $2; exit}'; }
"""


@dataclass(frozen=True)
class File:
    """A file to install. `path` on the server."""

    path: Path
    text: str
    is_executable: bool = False


@dataclass(frozen=True)
class SwitchNode:
    """A server that is a switch of the fabric, by softswitch. Port N is on the Nth interface."""

    interfaces: tuple[str, ...]
    threads: int
    device_id: int
    address: str
    mtu: int
    cpus: str | None = None
    prefix: Path = Path("/opt/netfold")
    settings: Path = Path("/etc/netfold")


@dataclass(frozen=True)
class ParameterServerNode:
    """A server on whose interface parameter servers run, one process a job."""

    interface: str
    threads: int
    controller: str
    mtu: int
    cpus: str | None = None
    prefix: Path = Path("/opt/netfold")
    settings: Path = Path("/etc/netfold")


def switch_files(node: SwitchNode) -> list[File]:
    script = node.prefix / "bin/netfold-switch-cards"
    lines = [line for name in node.interfaces for line in _card(name, node.mtu, _OFFLOADS, is_port=True)]
    ports = [word for number, name in enumerate(node.interfaces, 1) for word in ("-i", f"{number}@{name}")]
    command: list[object] = [node.prefix / "bin/softswitch", "--no-p4", "--device-id", node.device_id]
    command += ["--cpu-port", CPU_PORT, *ports, "--gso", "--threads", node.threads]
    command += ["--grpc-server-addr", node.address]
    if not node.address.startswith(("127.0.0.1:", "unix:")):
        command += ["--tls-cert", node.settings / "cert.pem", "--tls-key", node.settings / "key.pem"]
        command += ["--tls-ca", node.settings / "cert.pem"]
    unit = _unit("netfold switch", script, command, node.cpus, ())
    return [
        File(script, _SCRIPT_HEAD + "\n".join(lines) + "\n", is_executable=True),
        File(Path("/etc/systemd/system/netfold-switch.service"), unit),
    ]


def parameter_server_files(node: ParameterServerNode) -> list[File]:
    """The unit is a template: its instance is the job."""
    script = node.prefix / "bin/netfold-ps-cards"
    lines = _card(node.interface, node.mtu, _OFFLOADS_OF_A_HOST, is_port=False) + _rules(node)
    command: list[object] = [
        node.prefix / "bin/netfold",
        "host",
        "ps",
        "--job",
        "%i",
        "--threads",
        node.threads,
    ]
    environment = (
        f"{Variable.CONTROLLER}={node.controller}",
        f"{Variable.TLS_CA}={node.settings / 'cert.pem'}",
        f"{Variable.TOKEN_FILE}={node.settings / 'token'}",
    )
    unit = _unit("netfold parameter server of job %i", script, command, node.cpus, environment)
    sysctl = (
        "net.core.rmem_max = 67108864\nnet.core.wmem_max = 67108864\nnet.core.netdev_max_backlog = 10000\n"
    )
    return [
        File(script, _SCRIPT_HEAD + "\n".join(lines) + "\n", is_executable=True),
        File(Path("/etc/sysctl.d/90-netfold.conf"), sysctl),
        File(Path("/etc/systemd/system/netfold-ps@.service"), unit),
    ]


def _card(interface: str, mtu: int, offloads: Sequence[str], *, is_port: bool) -> list[str]:
    name = shlex.quote(interface)
    lines = [f"ip link set {name} mtu {mtu} up || exit 1"]
    if is_port:
        lines += [f"ip address flush dev {name}", f"try sysctl -qw net/ipv6/conf/{name}/disable_ipv6=1"]
    lines += [f"try ethtool -K {name} {offload} on" for offload in offloads]
    lines += [f"try ethtool -K {name} lro off", f"ring=$(largest_ring {name})"]
    lines.append(
        f'case "$ring" in ""|*[!0-9]*) echo "not here: rings of {name}";; '
        f'*) try ethtool -G {name} rx "$ring";; esac'
    )
    return [*lines, f"try ethtool -N {name} rx-flow-hash udp4 sdfn"]


def _rules(node: ParameterServerNode) -> list[str]:
    """To a single thread packets of jobs have the card's first queue for themselves: other traffic does not delay them
    there. To several threads all queues bring them, by worker (docs/decisions/0050)."""
    if node.threads > 1:
        return []
    name = shlex.quote(node.interface)
    ignored = PORT_LAST - PORT_FIRST  # a set bit of ethtool's mask is not compared
    return [
        f"try ethtool -K {name} ntuple on",
        f"try ethtool -N {name} flow-type udp4 dst-port {PORT_FIRST} m {ignored} action 0",
    ]


def _unit(
    what: str, script: Path, command: Sequence[object], cpus: str | None, environment: Sequence[str]
) -> str:
    service = [f"Environment={text}" for text in environment]
    service += [f"ExecStartPre=+{script}", f"ExecStart={' '.join(map(str, command))}"]
    service += ["Restart=always", "RestartSec=1", "LimitMEMLOCK=infinity", "NoNewPrivileges=true"]
    service += ["ProtectHome=true", "PrivateTmp=true", "CacheDirectory=netfold"]
    service += ["Environment=SOFTSWITCH_CACHE=/var/cache/netfold"]
    if cpus is not None:
        service.append(f"CPUAffinity={cpus}")
    head = [f"Description={what}", "After=network-online.target", "Wants=network-online.target"]
    head.append("StartLimitIntervalSec=0")  # no limit: what it waits for may come at any time
    sections = {"Unit": head, "Service": service, "Install": ["WantedBy=multi-user.target"]}
    return "\n".join(f"[{name}]\n" + "\n".join(lines) + "\n" for name, lines in sections.items())


@dataclass(frozen=True)
class Estimate:
    """Load of a switch whose links are at their full rate."""

    packets_per_s: float
    cores: float


def estimate(rate_gbps: float, ports: int, lanes: int, us_per_packet: float) -> Estimate:
    """`us_per_packet`: processor time of one received packet, and of the one that is sent for it."""
    bits = (packet_bytes(lanes) + FRAME_OVERHEAD_BYTES + FRAMING_BYTES) * 8
    packets_per_s = ports * rate_gbps * 1e9 / bits
    return Estimate(packets_per_s, packets_per_s * us_per_packet * 1e-6)
