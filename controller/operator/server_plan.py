# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Decides how a server serves as a switch: its ports, processors and memory. Inputs that cannot work are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from netfold.controller.operator.server_cards import (
    HUGE_PAGE_MB,
    PCI,
    VFIO,
    Card,
    ServerMachine,
    format_processors,
    parse_processors,
)
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, FRAMING_BYTES, packet_bytes

CORES_LEFT = 2  # for the kernel and the control plane
THREADS_MAX = 16

_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
"""The kernel takes more, which shells and systemd would take for something else."""

# softswitch's memory of a DPDK port (dpdk_device.c): buffers of a thread, and bytes around each
_BUFFERS = 1024 + 512 + 256 + 4 * 32 + 2 * 128
_BUFFER_HEAD, _BUFFER_MIN, _FRAME_HEAD = 384, 2048, 22
_DPDK_BASE_MB = 128


class ServerError(Exception):
    """A server cannot be set up in this way."""


class PortKind(StrEnum):
    """How frames cross the kernel (docs/reference/servers.md)."""

    PACKET = "packet"
    XDP = "xdp"
    DPDK = "dpdk"


MTU_MAX = {PortKind.PACKET: 65535, PortKind.XDP: 3818, PortKind.DPDK: 16000}


@dataclass(frozen=True)
class ServerPort:
    """A port of the switch: an interface, or a card that DPDK takes from the kernel, which has none."""

    kind: PortKind
    card: Card

    @property
    def name(self) -> str:
        return self.card.interface or self.card.pci

    @property
    def leaves_kernel(self) -> bool:
        return self.kind is PortKind.DPDK and not self.card.shares_driver

    @property
    def interface(self) -> str:
        """Empty for a port that leaves the kernel."""
        return "" if self.leaves_kernel else self.card.interface


def choose_ports(machine: ServerMachine, words: Sequence[str], threads: int, mtu: int) -> list[ServerPort]:
    """Takes IFACE, xdp:IFACE and dpdk:PCI. Raises ServerError."""
    ports = [_port(machine, word) for word in words]
    names = [port.name for port in ports]
    managed = machine.managed_by()
    taken = {port.card.pci for port in ports if port.leaves_kernel}
    for port in ports:
        if names.count(port.name) > 1:
            raise ServerError(f"{port.name}: two ports: expected another card for each")
        for interface in machine.interfaces_of(port.card.pci) if port.leaves_kernel else [port.interface]:
            if interface in managed:
                raise ServerError(
                    f"{interface}: it has the default route, so it manages this server: expected another card"
                )
            if users := machine.users_of(interface):
                raise ServerError(
                    f"{interface}: part of {', '.join(users)}: expected a card that nothing uses"
                )
        if port.leaves_kernel:
            _check_vfio(machine, port.card.pci, taken)
        if port.kind is PortKind.DPDK and not machine.has_dpdk():
            raise ServerError(f"{port.name}: libdpdk is not installed (apt-get install libdpdk-dev pkgconf)")
        if mtu > MTU_MAX[port.kind]:
            raise ServerError(f"{port.kind}:{port.name}: --mtu {mtu}: expected at most {MTU_MAX[port.kind]}")
        if port.kind is PortKind.XDP and (machine.max_queues(port.name) or threads) < threads:
            raise ServerError(
                f"xdp:{port.name}: --threads {threads}: expected at most {machine.max_queues(port.name)}, its queues"
            )
    _check_threads(machine, threads)
    return ports


def _port(machine: ServerMachine, word: str) -> ServerPort:
    kind, _, name = word.partition(":") if word.startswith(("xdp:", "dpdk:")) else ("packet", "", word)
    if kind == PortKind.DPDK:
        card = machine.device(name) if PCI.fullmatch(name) else None
        if card is None:
            known = name in machine.interfaces() and machine.card(name).pci
            hint = f"dpdk:{known}" if known else f"a PCI address: {_cards(machine)}"
            raise ServerError(f"{word}: no such card: expected {hint}")
        return ServerPort(PortKind.DPDK, card)
    if not _INTERFACE.fullmatch(name) or name == "lo" or name not in machine.interfaces():
        raise ServerError(f"{word!r}: no such interface: expected one of {_cards(machine)}")
    return ServerPort(PortKind(kind), machine.card(name))


def _cards(machine: ServerMachine) -> str:
    return ", ".join(f"{card.interface} ({card.pci})" for card in machine.cards()) or "no card: there is none"


def _check_vfio(machine: ServerMachine, pci: str, taken: set[str]) -> None:
    if not machine.has_iommu():
        raise ServerError(
            f"dpdk:{pci}: no IOMMU: expected one that is on in the firmware and the kernel (intel_iommu=on iommu=pt)"
        )
    others = [
        other
        for other in machine.in_group_of(pci)
        if other not in taken and machine.target(f"/sys/bus/pci/devices/{other}/driver") not in ("", VFIO)
    ]
    if others:
        raise ServerError(
            f"dpdk:{pci}: {', '.join(others)} is in the same group of the IOMMU, with a driver of the kernel: expected "
            "a port for it too, or a card in another slot"
        )


def _check_threads(machine: ServerMachine, threads: int) -> None:
    if threads & (threads - 1) or threads > THREADS_MAX:
        raise ServerError(f"--threads {threads}: expected a power of two, 1..{THREADS_MAX}")
    online = len(machine.online())
    if threads > online:
        raise ServerError(
            f"--threads {threads}: this server has {online} processors: expected at most as many"
        )


def choose_processors(
    machine: ServerMachine, ports: Sequence[ServerPort], threads: int, given: str | None
) -> list[int]:
    """Choose processors for the threads: one of each core, near the cards, or none where too few are left. Raises
    ServerError."""
    online = machine.online()
    if given is not None:
        try:
            chosen = parse_processors(given)
        except ValueError as error:
            raise ServerError(f"--cpus {error}") from None
        if absent := set(chosen) - set(online):
            raise ServerError(
                f"--cpus {given}: no processor {format_processors(absent)}: expected of {format_processors(online)}"
            )
        if len(chosen) < threads:
            raise ServerError(f"--cpus {given}: {len(chosen)} for {threads} threads: expected one for each")
        return chosen
    cores = [number for number in online if machine.siblings(number)[0] == number][CORES_LEFT:]
    near = [
        number for number in cores if any(number in machine.node_processors(node) for node in nodes(ports))
    ]
    by_distance = [*near, *(number for number in cores if number not in near)]
    return sorted(by_distance[:threads]) if len(cores) >= threads else []


def other_processors(machine: ServerMachine, chosen: Sequence[int]) -> list[int]:
    """All but the chosen ones and the rest of their cores."""
    taken = {sibling for number in chosen for sibling in machine.siblings(number)}
    return [number for number in machine.online() if number not in taken] if chosen else []


def nodes(ports: Sequence[ServerPort]) -> list[int]:
    return sorted({port.card.numa_node for port in ports if port.card.numa_node is not None})


def warnings(
    machine: ServerMachine, ports: Sequence[ServerPort], threads: int, processors: Sequence[int]
) -> list[str]:
    """Sentences on what works but costs."""
    found = []
    if len(found_nodes := nodes(ports)) > 1:
        places = ", ".join(f"{port.name} at {port.card.numa_node}" for port in ports)
        found.append(f"the cards are at NUMA nodes {found_nodes} ({places}): frames cross between them")
    far = [n for node in found_nodes[:1] for n in processors if n not in machine.node_processors(node)]
    if far and len(found_nodes) == 1:
        found.append(f"processors {format_processors(far)} are not at the cards' NUMA node {found_nodes[0]}")
    if not processors:
        found.append(
            f"{len(machine.online())} processors do not give {threads} threads a core and leave {CORES_LEFT}: the "
            "threads get none of their own"
        )
    elif len({machine.siblings(number)[0] for number in processors}) < len(processors):
        found.append(f"processors {format_processors(processors)} share cores")
    for port in ports:
        if port.kind is PortKind.XDP and not port.card.has_zero_copy:
            found.append(
                f"{port.name}: its driver {port.card.driver} copies frames of AF_XDP: no gain is known"
            )
    return found


def huge_pages(machine: ServerMachine, ports: Sequence[ServerPort], threads: int, mtu: int) -> dict[int, int]:
    """Pages of 2 MB by NUMA node, which bound DPDK's memory. Raises ServerError where a node has too little."""
    found: dict[int, int] = {}
    room = _BUFFER_MIN
    while room < mtu + _FRAME_HEAD:
        room *= 2
    for port in ports:
        if port.kind is PortKind.DPDK:
            node = port.card.numa_node or 0
            found.setdefault(node, _DPDK_BASE_MB // HUGE_PAGE_MB)
            found[node] += -(-threads * _BUFFERS * (room + _BUFFER_HEAD) // (HUGE_PAGE_MB << 20))
    for node, pages in found.items():
        folder = machine.huge_pages_folder(node)
        present = machine.number(f"{folder}/nr_hugepages")
        if present is None:
            raise ServerError(
                f"DPDK: this kernel has no huge pages of {HUGE_PAGE_MB} MB ({folder}): expected hugetlbfs"
            )
        free = machine.free_memory_mb(node)
        if (pages - present) * HUGE_PAGE_MB > free // 2:
            raise ServerError(
                f"DPDK: {pages} huge pages of {HUGE_PAGE_MB} MB are more than half of the {free} MB that NUMA node "
                f"{node} has free: expected fewer --threads, a smaller --mtu, or more memory"
            )
    return found


US_PER_PACKET = {PortKind.PACKET: 1.2, PortKind.XDP: 0.5, PortKind.DPDK: 0.4}
US_PER_PACKET_COPIED = 1.3
"""Processor time of one packet of 256 lanes in, and of the one that is sent for it (docs/reference/servers.md): packet
sockets and AF_XDP in copy mode on veth links, frames one by one; the others computed."""


@dataclass(frozen=True)
class Estimate:
    """`bound`: what ends it. `cores`: what the links' whole rate takes."""

    gbps: float
    bound: str
    packets_per_s: float
    cores: float


def estimate(
    ports: Sequence[ServerPort], rates_gbps: Sequence[float], lanes: int, threads: int, us_per_packet: float
) -> Estimate:
    """Rate of all ports together, each direction. `us_per_packet`: processor time of one received packet, and of the
    one that is sent for it."""
    bits = (packet_bytes(lanes) + FRAME_OVERHEAD_BYTES + FRAMING_BYTES) * 8
    links = sum(rates_gbps)
    slots = {p.card.pci.rpartition(".")[0]: p.card.pcie_gbps for p in ports if p.card.pcie_gbps}
    buses = sum(
        min(
            slots.get(slot, float("inf")),
            sum(rate for port, rate in zip(ports, rates_gbps, strict=True) if _slot(port) == slot),
        )
        for slot in {_slot(port) for port in ports}
    )
    bounds = {
        "the links": links,
        "the PCI Express slots": buses,
        "the processors": threads / us_per_packet * bits * 1e-3,
    }
    bound = min(bounds, key=lambda name: bounds[name])
    return Estimate(
        bounds[bound], bound, bounds[bound] * 1e9 / bits, links * 1e9 / bits * us_per_packet * 1e-6
    )


def _slot(port: ServerPort) -> str:
    return port.card.pci.rpartition(".")[0] or port.name


def us_per_packet(ports: Sequence[ServerPort]) -> float:
    return max(
        US_PER_PACKET_COPIED
        if port.kind is PortKind.XDP and not port.card.has_zero_copy
        else US_PER_PACKET[port.kind]
        for port in ports
    )
