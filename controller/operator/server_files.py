# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Files that make a bare server an aggregation node: systemd units, and scripts that set up its network cards."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from netfold.controller.operator.server_cards import Card, format_processors
from netfold.controller.operator.server_plan import PortKind, ServerError, ServerPort
from netfold.controller.switches.tables import CPU_PORT
from netfold.protocol.constants import PORT_FIRST, PORT_LAST
from netfold.protocol.environment import Variable

OFFLOADS = {
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
    "gso": "generic-segmentation-offload",
    "tso": "tcp-segmentation-offload",
    "gro": "generic-receive-offload",
    "rx-udp-gro-forwarding": "rx-udp-gro-forwarding",
    "tx-udp-segmentation": "tx-udp-segmentation",
}
"""Names for ethtool, and those that it shows.

Runs of packets cross the card and the kernel as one frame, both ways (docs/decisions/0041)."""
_OFFLOADS_OF_A_HOST = tuple(name for name in OFFLOADS if name != "rx-udp-gro-forwarding")

_SCRIPT_HEAD = (Path(__file__).parent / "server_set_up.sh").read_text()
USER = "netfold-switch"
PREFIX = Path("/opt/netfold")
SETTINGS = Path("/etc/netfold")
LISTEN = re.compile(r"[A-Za-z0-9.:\[\]-]+:[0-9]{1,5}|unix:[A-Za-z0-9/._-]+")
"""Addresses that a unit's file takes as they are."""
SWITCH_RECORD = SETTINGS / "switch.json"
"""The switch as deployed, for undoing and checking it."""


@dataclass(frozen=True)
class File:
    """A file to install. `path` on the server."""

    path: Path
    text: str
    is_executable: bool = False


@dataclass(frozen=True)
class SwitchNode:
    """A server that is a switch of the fabric, by softswitch. `processors`: of its threads; `others`: of all else.
    `huge_pages`: by NUMA node."""

    ports: tuple[ServerPort, ...]
    threads: int
    device_id: int
    address: str
    mtu: int
    processors: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    huge_pages: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ParameterServerNode:
    """A server on whose interface parameter servers run, one process a job."""

    interface: str
    threads: int
    controller: str
    mtu: int
    cpus: str | None = None


def switch_files(node: SwitchNode) -> list[File]:
    """The script does what softswitch cannot do without root's rights."""
    script = PREFIX / "bin/netfold-switch-cards"
    ports = [
        word
        for number, port in enumerate(node.ports, 1)
        for word in ("-i", _port_argument(number, port, node))
    ]
    command: list[object] = [PREFIX / "bin/softswitch", "--no-p4", "--device-id", node.device_id]
    command += ["--cpu-port", CPU_PORT, *ports, "--gso", "--threads", node.threads]
    command += ["--grpc-server-addr", node.address]
    service = [f"User={USER}", *_rights(node)]
    if not node.address.startswith(("127.0.0.1:", "unix:")):
        command += ["--tls-cert", "%d/cert.pem", "--tls-key", "%d/key.pem", "--tls-ca", "%d/cert.pem"]
        service += [f"LoadCredential={name}:{SETTINGS / name}" for name in ("cert.pem", "key.pem")]
    service += [
        "ProtectSystem=strict",
        f"RuntimeDirectory={USER}",
        *_start(script, command, "netfold-switch"),
    ]
    service += _affinity(node.processors).splitlines()
    return [
        File(
            script,
            _script(line for port in node.ports for line in _port_lines(port, node)),
            is_executable=True,
        ),
        File(Path("/etc/systemd/system/netfold-switch.service"), unit("netfold switch", service)),
        File(Path(f"/etc/sysusers.d/{USER}.conf"), f'u {USER} - "netfold switch"\n'),
        File(INTERRUPT_BALANCE, f"[Unit]\nConditionPathExists=!{SWITCH_RECORD}\n"),
        File(OTHER_PROCESSORS, "[Manager]\n" + _affinity(node.others)),
        File(SWITCH_RECORD, record_text(node)),
    ]


INTERRUPT_BALANCE = Path("/etc/systemd/system/irqbalance.service.d/90-netfold-switch.conf")
"""irqbalance would move the cards' interrupts."""
OTHER_PROCESSORS = Path("/etc/systemd/system.conf.d/90-netfold-switch.conf")
"""Processes that are not the switch."""


def _affinity(processors: Sequence[int]) -> str:
    return f"CPUAffinity={format_processors(processors)}\n" if processors else ""


def _port_argument(number: int, port: ServerPort, node: SwitchNode) -> str:
    if port.kind is PortKind.DPDK:
        return f"{number}@dpdk:{port.card.pci},mtu={node.mtu}"
    return f"{number}@{'xdp:' if port.kind is PortKind.XDP else ''}{port.name}"


def _rights(node: SwitchNode) -> list[str]:
    """softswitch gives up CAP_BPF, once its programs are loaded."""
    kinds = {port.kind for port in node.ports}
    rights = "CAP_NET_ADMIN CAP_NET_RAW" + (" CAP_BPF" if PortKind.XDP in kinds else "")
    return [f"AmbientCapabilities={rights}", f"CapabilityBoundingSet={rights}"]


def _port_lines(port: ServerPort, node: SwitchNode) -> list[str]:
    """Huge pages come first, while memory is in one piece."""
    lines = []
    if port.kind is PortKind.DPDK:
        lines += [f"huge_pages {numa} {pages}" for numa, pages in node.huge_pages.items()]
    if port.leaves_kernel:
        return [*lines, f"bind_to_vfio {port.card.pci} {USER}"]
    name = shlex.quote(port.name)
    lines += [f"keep_management {name}", f"link {name} {node.mtu}", f"no_addresses {name}"]
    if port.kind is PortKind.DPDK:
        return lines
    offloads = OFFLOADS if port.kind is PortKind.PACKET else ()
    lines += [f"queues {name} {node.threads}", *_card(port.name, offloads), f"prompt_reports {name}"]
    if node.processors:
        lines.append(f"interrupts {name} {' '.join(map(str, node.processors))}")
    return lines


def parameter_server_files(node: ParameterServerNode) -> list[File]:
    """The unit is a template: its instance is the job."""
    script = PREFIX / "bin/netfold-ps-cards"
    name = shlex.quote(node.interface)
    lines = [f"link {name} {node.mtu}", *_card(node.interface, _OFFLOADS_OF_A_HOST), *_rules(node)]
    command: list[object] = [
        PREFIX / "bin/netfold",
        "host",
        "ps",
        "--job",
        "%i",
        "--threads",
        node.threads,
    ]
    environment = (
        f"{Variable.CONTROLLER}={node.controller}",
        f"{Variable.TLS_CA}={SETTINGS / 'cert.pem'}",
        f"{Variable.TOKEN_FILE}={SETTINGS / 'token'}",
    )
    service = [f"Environment={text}" for text in environment] + _start(script, command, "netfold")
    if node.cpus is not None:
        service.append(f"CPUAffinity={node.cpus}")
    sysctl = (
        "net.core.rmem_max = 67108864\nnet.core.wmem_max = 67108864\nnet.core.netdev_max_backlog = 10000\n"
    )
    return [
        File(script, _script(lines), is_executable=True),
        File(Path("/etc/sysctl.d/90-netfold.conf"), sysctl),
        File(
            Path("/etc/systemd/system/netfold-ps@.service"),
            unit("netfold parameter server of job %i", service),
        ),
    ]


def _script(lines: Iterable[str]) -> str:
    return _SCRIPT_HEAD + "\n" + "\n".join([*lines, "exit 0"]) + "\n"


def _card(interface: str, offloads: Iterable[str]) -> list[str]:
    name = shlex.quote(interface)
    lines = [f"feature {name} {offload} {OFFLOADS[offload]} on" for offload in offloads]
    lines.append(f"feature {name} lro large-receive-offload off")
    return [*lines, f"largest_ring {name}", f"spread_by_ports {name}"]


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


def _start(script: Path, command: Sequence[object], cache: str) -> list[str]:
    service = [f"ExecStartPre=+{script}", f"ExecStart={' '.join(map(str, command))}"]
    service += ["Restart=always", "RestartSec=1", "LimitMEMLOCK=infinity", "NoNewPrivileges=true"]
    service += ["ProtectHome=true", "PrivateTmp=true", f"CacheDirectory={cache}"]
    return [*service, f"Environment=SOFTSWITCH_CACHE=/var/cache/{cache}"]


def unit(what: str, service: Sequence[str]) -> str:
    head = [f"Description={what}", "After=network-online.target", "Wants=network-online.target"]
    head.append("StartLimitIntervalSec=0")  # no limit: what it waits for may come at any time
    sections = {"Unit": head, "Service": service, "Install": ["WantedBy=multi-user.target"]}
    return "\n".join(f"[{name}]\n" + "\n".join(lines) + "\n" for name, lines in sections.items())


def record_text(node: SwitchNode) -> str:
    return json.dumps(asdict(node), indent=1) + "\n"


def read_record(text: str) -> SwitchNode:
    """Raises ServerError."""
    try:
        found = json.loads(text)
        ports = [ServerPort(PortKind(port["kind"]), Card(**port["card"])) for port in found.pop("ports")]
        pages = {int(numa): int(count) for numa, count in found.pop("huge_pages").items()}
        own, others = (tuple(map(int, found.pop(name))) for name in ("processors", "others"))
        node = SwitchNode(tuple(ports), processors=own, others=others, huge_pages=pages, **found)
        numbers = [node.threads, node.device_id, node.mtu]
        texts = [node.address, *(text for port in ports for text in (port.card.interface, port.card.pci))]
        if not all(isinstance(number, int) for number in numbers) or not all(
            isinstance(t, str) for t in texts
        ):
            raise TypeError("a number or a text is of another type")
        if not LISTEN.fullmatch(node.address):
            raise ValueError(f"address {node.address!r}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ServerError(f"{SWITCH_RECORD}: {error}: expected what `netfold deploy switch` writes") from None
    return node
