# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A made-up server: its /sys and /proc in a folder, and what the tools of its network print."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from netfold.controller.operator.server_cards import ServerMachine, format_processors, parse_processors

MLX5, ICE, ICE_2, VIRTIO = "0000:3b:00.0", "0000:86:00.0", "0000:86:00.1", "0000:00:03.0"
CHANNELS = """Channel parameters for eth:
Pre-set maximums:
RX:		n/a
TX:		n/a
Other:		1
Combined:	{most}
Current hardware settings:
RX:		n/a
TX:		n/a
Other:		1
Combined:	{now}
"""


@dataclass
class ServerTree:
    """Two sockets with 8 cores of two processors each: 0-7 and 16-23, 8-15 and 24-31. `printed`: by command."""

    root: Path
    printed: dict[tuple[str, ...], str] = field(default_factory=dict)

    @property
    def machine(self) -> ServerMachine:
        return ServerMachine(self.root, lambda *command: self.printed.get(command))

    def write(self, path: str, text: object) -> Path:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        return file

    def link(self, path: str, target: str) -> None:
        """`target` from the root of the tree."""
        link = self.root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(self.root / target.lstrip("/"))

    def add_processors(self, nodes: tuple[str, ...] = ("0-7,16-23", "8-15,24-31"), threads: int = 2) -> None:
        everything = sorted(number for text in nodes for number in parse_processors(text))
        self.write("/sys/devices/system/cpu/online", format_processors(everything))
        cores = len(everything) // threads
        for number in everything:
            siblings = f"{number % cores},{number % cores + cores}" if threads == 2 else number
            self.write(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list", siblings)
        for node, text in enumerate(nodes):
            folder = f"/sys/devices/system/node/node{node}"
            self.write(f"{folder}/cpulist", text)
            self.write(
                f"{folder}/meminfo", f"Node {node} MemTotal: 67108864 kB\nNode {node} MemFree: 33554432 kB"
            )
            self.write(f"{folder}/hugepages/hugepages-2048kB/nr_hugepages", 0)

    def add_card(self, interface: str, pci: str, driver: str, *, node: int, speed: int = 25000) -> None:
        """With 16 queues and interrupts, in a slot of 16 lanes of the fourth generation."""
        device = f"/sys/devices/pci{pci[:7]}/{pci}"
        self.write(f"{device}/numa_node", node)
        self.write(f"{device}/class", "0x020000")
        self.write(f"{device}/current_link_speed", "16.0 GT/s PCIe")
        self.write(f"{device}/current_link_width", 16)
        self.write(f"{device}/driver_override", "(null)")
        self.link(f"{device}/driver", f"/sys/bus/pci/drivers/{driver}")
        self.link(f"/sys/bus/pci/devices/{pci}", device)
        for queue in range(16):
            number = 100 * (len(self.names("/sys/class/net")) + 1) + queue
            self.write(f"{device}/msi_irqs/{number}", "msix")
            self.write(f"/proc/irq/{number}/smp_affinity_list", "0-31")
        self.add_interface(interface, speed)
        self.link(f"/sys/class/net/{interface}/device", device)
        self.write(f"{device}/net/{interface}/ifindex", 1)
        group = f"/sys/kernel/iommu_groups/{len(self.names('/sys/kernel/iommu_groups')) + 7}"
        self.link(f"{device}/iommu_group", group)
        self.link(f"{group}/devices/{pci}", device)
        self.write(f"/dev/vfio/{Path(group).name}", "")

    def add_interface(self, interface: str, speed: int, queues: int = 16) -> None:
        folder = f"/sys/class/net/{interface}"
        for name, value in {"speed": speed, "mtu": 1500, "flags": "0x1003", "carrier": 1}.items():
            self.write(f"{folder}/{name}", value)
        for queue in range(queues):
            self.write(f"{folder}/queues/rx-{queue}/rps_cpus", 0)
        self.printed["ethtool", "-l", interface] = CHANNELS.format(most=64, now=queues)

    def add_virtio(self, interface: str) -> None:
        """It has the default route, as a virtual machine's only card."""
        device = f"/sys/devices/pci0000:00/{VIRTIO}"
        self.write(f"{device}/numa_node", -1)
        self.link(f"{device}/driver", "/sys/bus/pci/drivers/virtio-pci")
        self.link(f"/sys/bus/pci/devices/{VIRTIO}", device)
        self.link(f"{device}/virtio0/driver", "/sys/bus/virtio/drivers/virtio_net")
        self.add_interface(interface, -1, queues=1)
        self.link(f"/sys/class/net/{interface}/device", f"{device}/virtio0")
        zeros = "0" * 8
        self.write(
            "/proc/net/route",
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
            f"{interface}\t{zeros}\t010200C0\t0003\t0\t0\t0\t{zeros}\t0\t0\t0",
        )

    def names(self, path: str) -> list[str]:
        return self.machine.names(path)


def server_tree(root: Path) -> ServerTree:
    """A server with one mlx5 and a card of two ice ports at different sockets, managed by a virtio card."""
    tree = ServerTree(root)
    tree.add_processors()
    tree.add_card("mlx0", MLX5, "mlx5_core", node=0, speed=100000)
    tree.add_card("ice0", ICE, "ice", node=1)
    tree.add_card("ice1", ICE_2, "ice", node=1)
    tree.add_virtio("man0")
    tree.add_interface("veth0", 10000, queues=1)
    tree.printed["ethtool", "-i", "veth0"] = "driver: veth\nversion: 1.0\n"
    tree.printed["pkg-config", "--exists", "libdpdk"] = ""
    return tree
