# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Network cards, processors and memory of a server, from /sys, /proc and the tools of the network."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

PCI = re.compile(r"[0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
SHARED_DRIVERS = frozenset({"mlx4_core", "mlx5_core"})
"""DPDK's driver and the kernel's use a card together."""
ZERO_COPY_DRIVERS = frozenset({"i40e", "ice", "igc", "ixgbe", "mlx5_core", "stmmac"})
"""AF_XDP sockets and these cards share memory."""
VFIO = "vfio-pci"
HUGE_PAGE_MB = 2
_BRIDGE_CLASS = "0x0604"
_TOOL_S = 10
_LANE_GBPS = {"2.5": 2.0, "5.0": 4.0, "8.0": 7.877, "16.0": 15.754, "32.0": 31.508, "64.0": 63.0}
"""A lane of PCI Express, by GT/s, without its line code."""
_PCI_EFFICIENCY = 0.85
"""The share that frames of a kilobyte have of a slot. Headers of PCI Express and descriptors take the rest."""

RunTool = Callable[..., str | None]


def run_tool(*command: str) -> str | None:
    """Output; None for a tool that is absent, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_S, check=True)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout


def parse_processors(text: str) -> list[int]:
    """The kernel's and systemd's form, as 2-5,8. Raises ValueError."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        if not (
            first.isascii() and first.isdecimal() and (not dash or (last.isascii() and last.isdecimal()))
        ):
            raise ValueError(f"{text!r}: expected processors as 2-5 or 2,4,6")
        found.update(range(int(first[:5]), int((last or first)[:5]) + 1))
    return sorted(found)


def format_processors(processors: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(processors):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


@dataclass(frozen=True)
class Card:
    """A port of a network card. `interface`: empty while the kernel does not drive it. `pci`: empty for a virtual one.
    `queues`: of the interface now."""

    interface: str
    pci: str
    driver: str
    speed_mbps: int | None
    numa_node: int | None
    queues: int
    pcie_gbps: float | None

    @property
    def shares_driver(self) -> bool:
        return self.driver in SHARED_DRIVERS

    @property
    def has_zero_copy(self) -> bool:
        return self.driver in ZERO_COPY_DRIVERS


@dataclass(frozen=True)
class ServerMachine:
    """`root`: where its /sys and /proc are."""

    root: Path = Path("/")
    run: RunTool = field(default=run_tool)

    def text(self, path: str) -> str | None:
        try:
            return (self.root / path.lstrip("/")).read_text().strip()
        except (OSError, ValueError):  # also where a driver does not answer
            return None

    def number(self, path: str) -> int | None:
        try:
            return int(self.text(path) or "")
        except ValueError:
            return None

    def names(self, path: str) -> list[str]:
        try:
            return sorted(entry.name for entry in (self.root / path.lstrip("/")).iterdir())
        except OSError:
            return []

    def target(self, path: str) -> str:
        """Name of what a symbolic link leads to, or an empty text."""
        try:
            return (self.root / path.lstrip("/")).readlink().name
        except OSError:
            return ""

    def processors(self, path: str) -> list[int]:
        try:
            return parse_processors(self.text(path) or "")
        except ValueError:
            return []

    def online(self) -> list[int]:
        return self.processors("/sys/devices/system/cpu/online")

    def node_processors(self, node: int) -> list[int]:
        return self.processors(f"/sys/devices/system/node/node{node}/cpulist")

    def siblings(self, processor: int) -> list[int]:
        """Processors of one core."""
        found = self.processors(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
        return found or [processor]

    def status(self, process: str) -> dict[str, str]:
        """/proc/PROCESS/status; empty for a process that has ended."""
        lines = (self.text(f"/proc/{process}/status") or "").splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def is_served(self, address: str) -> bool:
        """Whether a process accepts connections at HOST:PORT, of any host, or unix:PATH."""
        if address.startswith("unix:"):
            lines = (self.text("/proc/net/unix") or "").splitlines()
            return any(line.endswith(f" {address.removeprefix('unix:')}") for line in lines)
        place, listens = f":{int(address.rpartition(':')[2]):04X}", "0A"
        tables = [self.text(f"/proc/net/{name}") or "" for name in ("tcp", "tcp6")]
        rows = [line.split() for table in tables for line in table.splitlines()]
        return any(len(row) > 3 and row[1].endswith(place) and row[3] == listens for row in rows)

    def interfaces(self) -> list[str]:
        return self.names("/sys/class/net")

    def cards(self) -> list[Card]:
        """Ports of hardware that the kernel drives."""
        found = map(self.card, self.interfaces())
        return [card for card in found if card.pci]

    def card(self, interface: str) -> Card:
        folder = f"/sys/class/net/{interface}"
        pci = self._pci(f"{folder}/device")
        driver = self.target(f"/sys/bus/pci/devices/{pci}/driver") if pci else ""
        if driver in ("", "virtio-pci"):
            driver = self.target(f"{folder}/device/driver") or self._driver_by_ethtool(interface)
        queues = sum(name.startswith("rx-") for name in self.names(f"{folder}/queues"))
        speed = self.number(f"{folder}/speed")
        return self._of_device(pci, driver, interface, speed if speed and speed > 0 else None, queues)

    def device(self, pci: str) -> Card | None:
        """By PCI address; None without such a card."""
        folder = f"/sys/bus/pci/devices/{pci}"
        if not self.names(folder):
            return None
        interfaces = self.interfaces_of(pci)
        if interfaces:
            return self.card(interfaces[0])
        return self._of_device(pci, self.target(f"{folder}/driver"), "", None, 0)

    def interfaces_of(self, pci: str) -> list[str]:
        return [name for name in self.interfaces() if self._pci(f"/sys/class/net/{name}/device") == pci]

    def _of_device(self, pci: str, driver: str, interface: str, speed: int | None, queues: int) -> Card:
        folder = f"/sys/bus/pci/devices/{pci}"
        node = self.number(f"{folder}/numa_node") if pci else None
        gts = (self.text(f"{folder}/current_link_speed") or "").partition(" ")[0]
        width = self.number(f"{folder}/current_link_width") if pci else None
        has_rate = bool(pci and width and gts in _LANE_GBPS)
        gbps = _LANE_GBPS[gts] * width * _PCI_EFFICIENCY if has_rate and width else None
        return Card(
            interface, pci, driver, speed, node if node is not None and node >= 0 else None, queues, gbps
        )

    def _pci(self, device: str) -> str:
        """The last PCI address on the path of a device."""
        path = os.path.realpath(self.root / device.lstrip("/"))
        return next((part for part in reversed(Path(path).parts) if PCI.fullmatch(part)), "")

    def _driver_by_ethtool(self, interface: str) -> str:
        lines = (self.run("ethtool", "-i", interface) or "").splitlines()
        return next((line.removeprefix("driver: ") for line in lines if line.startswith("driver: ")), "")

    def max_queues(self, interface: str) -> int | None:
        """The card's limit of pairs of queues; None where ethtool does not state it."""
        limits, _, _ = (self.run("ethtool", "-l", interface) or "").partition("Current")
        pairs = (line.split(":") for line in limits.splitlines() if line.count(":") == 1)
        found = {name: int(text) for name, text in pairs if text.strip().isdecimal()}
        return found.get("Combined") or min(found.get("RX", 0), found.get("TX", 0)) or None

    def managed_by(self) -> set[str]:
        """Interfaces of default routes."""
        ipv4 = [line.split() for line in (self.text("/proc/net/route") or "").splitlines()[1:]]
        ipv6 = [line.split() for line in (self.text("/proc/net/ipv6_route") or "").splitlines()]
        found = {words[0] for words in ipv4 if len(words) > 7 and words[1] == words[7] == "0" * 8}
        found |= {words[9] for words in ipv6 if len(words) > 9 and words[0] == "0" * 32 and words[1] == "00"}
        return found - {"lo"}

    def users_of(self, interface: str) -> list[str]:
        """Bridges, bonds, VLANs and others above an interface."""
        names = self.names(f"/sys/class/net/{interface}")
        return [name.removeprefix("upper_") for name in names if name.startswith("upper_")]

    def in_group_of(self, pci: str) -> list[str]:
        """Other devices that share the IOMMU's group of a card, without bridges."""
        group = self.names(f"/sys/bus/pci/devices/{pci}/iommu_group/devices")
        return [
            other
            for other in group
            if other != pci
            and not (self.text(f"/sys/bus/pci/devices/{other}/class") or "").startswith(_BRIDGE_CLASS)
        ]

    def has_iommu(self) -> bool:
        return bool(self.names("/sys/kernel/iommu_groups"))

    def has_dpdk(self) -> bool:
        return self.run("pkg-config", "--exists", "libdpdk") is not None

    def huge_pages_folder(self, node: int | None) -> str:
        """Pages of 2 MB have it: the node's, or the whole server's."""
        name = f"hugepages/hugepages-{HUGE_PAGE_MB * 1024}kB"
        of_node = f"/sys/devices/system/node/node{node}/{name}"
        return of_node if self.names(of_node) else f"/sys/kernel/mm/{name}"

    def free_memory_mb(self, node: int | None) -> int:
        """Free at a node, or in the server; 0 where it is not stated."""
        of_node = self.text(f"/sys/devices/system/node/node{node}/meminfo")
        text, name = (of_node, "MemFree:") if of_node else (self.text("/proc/meminfo"), "MemAvailable:")
        words = (text or "").split()
        return int(words[words.index(name) + 1]) // 1024 if name in words else 0
