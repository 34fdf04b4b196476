# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Random fabrics and trees for the stateful test: switches that form a tree, hosts at the ports that are left, a
parameter server at the top switch, and aggregation trees in which any switch may add up or pass on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from random import Random

from tests.dataplane.node import Child, Management, Neighbor, Owner, Pass, Route, Setting, TreeAt

DOWN_PORTS = (1, 2, 3)
UPLINK, SERVER = 4, 5
SERVER_ADDRESS = "10.200.0.1"
NODE = 1000  # a switch's child number is this and its own number


@dataclass(frozen=True)
class Host:
    switch: int
    port: int

    @property
    def address(self) -> str:
        return f"10.{self.switch}.0.{self.port}"


@dataclass(frozen=True)
class Fabric:
    """`places[s]` is where switch s is attached: (parent switch, its port); that of switch 0, the top, is unused."""

    places: tuple[tuple[int, int], ...]

    @classmethod
    def random(cls, random: Random, switches: int, levels: int) -> Fabric:
        """Draw at most `switches`; fewer if `levels` leaves no room."""
        places, level = [(0, 0)], [1]
        free = [(0, port) for port in DOWN_PORTS]
        while len(places) < switches and free:
            parent, port = free.pop(random.randrange(len(free)))
            places.append((parent, port))
            level.append(level[parent] + 1)
            if level[-1] < levels:
                free += [(len(places) - 1, port) for port in DOWN_PORTS]
        return cls(tuple(places))

    @cached_property
    def links(self) -> dict[tuple[int, int], tuple[int, int]]:
        """The other end of every port that leads to a switch."""
        down = {place: (switch, UPLINK) for switch, place in enumerate(self.places) if switch}
        return down | {far: near for near, far in down.items()}

    @cached_property
    def hosts(self) -> list[Host]:
        return [
            Host(switch, port)
            for switch in range(len(self.places))
            for port in DOWN_PORTS
            if (switch, port) not in self.links
        ]

    def host_at(self, switch: int, port: int) -> int | None:
        host = Host(switch, port)
        return self.hosts.index(host) if host in self.hosts else None

    @cached_property
    def depth(self) -> int:
        return max(len(self.way_up(switch)) for switch in range(len(self.places)))

    def way_up(self, switch: int) -> list[int]:
        """The path from a switch to the top, both included."""
        return [switch] if switch == 0 else [switch, *self.way_up(self.places[switch][0])]

    def below(self, switch: int, port: int) -> list[int]:
        """The hosts that a down port leads to."""
        return [number for number, host in enumerate(self.hosts) if self.port_to(switch, host) == port]

    def port_to(self, switch: int, host: Host) -> int | None:
        """The down port of a switch that leads to a host; None if the host is not below."""
        if host.switch == switch:
            return host.port
        way = self.way_up(host.switch)
        return self.places[way[way.index(switch) - 1]][1] if switch in way else None

    def settings(self, switch: int) -> list[Setting]:
        """Returns what the switch holds without any tree: neighbors, routes, the controller's way in."""
        found: list[Setting] = [Management()]
        for port in (*DOWN_PORTS, UPLINK, SERVER):
            host = self.host_at(switch, port)
            address = self.hosts[host].address if host is not None else None
            if (switch, port) == (0, SERVER):
                address = SERVER_ADDRESS
            own, other = f"02:00:00:01:{switch:02x}:{port:02x}", f"02:00:00:02:{switch:02x}:{port:02x}"
            found.append(Neighbor(port, own, other, address))
        for target in self.hosts:
            found.append(Route(f"{target.address}/32", (self.port_to(switch, target) or UPLINK,)))
        return found


@dataclass(frozen=True)
class TreeShape:
    """An aggregation tree over a fabric. `hosts` are those of the workers, child 0 first, and may have several each;
    `adding` the switches that add up; `at_server`: the parameter server is the root, else the top switch is. `base`: of
    its slots on every switch."""

    fabric: Fabric
    tree: int
    hosts: tuple[int, ...]
    adding: frozenset[int]
    at_server: bool
    slots: int
    base: int
    quorum: int | None = None
    targets: bool = False

    @classmethod
    def random(cls, random: Random, fabric: Fabric, tree: int, slots: int, base: int) -> TreeShape:
        count = random.randint(1, min(6, len(fabric.hosts)))
        hosts = tuple(random.sample(range(len(fabric.hosts)), count))
        at_server = random.random() < 0.3
        adding = {switch for switch in range(len(fabric.places)) if random.random() < 0.7}
        if not at_server:
            adding.add(0)
        quorum = random.randint(1, count) if random.random() < 0.4 else None
        targets = quorum is None and random.random() < 0.7
        return cls(fabric, tree, hosts, frozenset(adding), at_server, slots, base, quorum, targets)

    @classmethod
    def wide(
        cls, random: Random, fabric: Fabric, tree: int, slots: int, base: int, *, workers: int
    ) -> TreeShape:
        """Make all workers children of the top switch, or of a node below it, whose sum is one child there."""
        hosts = tuple(random.choices(range(len(fabric.hosts)), k=workers))
        adding = {0, *(switch for switch in range(1, len(fabric.places)) if random.random() < 0.1)}
        targets = random.random() < 0.7
        return cls(fabric, tree, hosts, frozenset(adding), False, slots, base, targets=targets)

    @property
    def root_address(self) -> str:
        return SERVER_ADDRESS if self.at_server else "10.0.0.254"

    @property
    def udp_port(self) -> int:
        return 0xF000 + self.tree % 256

    @cached_property
    def server_children(self) -> list[int]:
        return [number for number, _ in self._leaving(0)]

    @cached_property
    def server_senders(self) -> list[int]:
        """Its children, and with a quorum all senders under them."""
        return self.server_children + [number for number, _ in self._late(0) + self._missed(0)]

    def at(self, switch: int) -> TreeAt | None:
        """Returns the switch's part in the tree, in epoch 0; None if no worker is below it."""
        arriving = self._arriving(switch)
        if not arriving:
            return None
        top = switch == 0
        up_port = SERVER if top else UPLINK
        root = top and not self.at_server
        children: tuple[Child, ...] = ()
        passes: tuple[Pass, ...] = ()
        if switch in self.adding:
            children = tuple(Child(port, number) for number, port in arriving)
        else:
            passes = tuple(Pass(port, number, up_port) for number, port in arriving)
        below = tuple(Child(port, number) for number, port in self._late(switch)) if root else ()
        if not root:
            passes += tuple(Pass(port, number, up_port) for number, port in self._late(switch))
        quorum = None if self.quorum is None or not children else self.quorum if root else 0
        return TreeAt(
            self.tree,
            0,
            self.slots,
            self.base,
            root,
            children,
            passes,
            results_from=None if root else up_port,
            up=(up_port, NODE + switch) if children and not root else None,
            udp_port=self.udp_port,
            down=tuple(sorted({port for _, port in arriving})),
            quorum=quorum,
            owners=self._owners(switch) if self.targets else (),
            below=below,
        )

    def _owners(self, switch: int) -> tuple[Owner, ...]:
        """The workers below a switch."""
        ways = [self.fabric.port_to(switch, self.fabric.hosts[host]) for host in self.hosts]
        return tuple(
            Owner(rank, port, alone=ways.count(port) == 1)
            for rank, port in enumerate(ways)
            if port is not None
        )

    def _late(self, switch: int) -> list[tuple[int, int]]:
        """(child number, port) of those whose late packets inner nodes below pass on to here."""
        found = []
        for port in DOWN_PORTS:
            link = self.fabric.links.get((switch, port))
            if link is not None and self.quorum is not None:
                found += [(number, port) for number, _ in self._late(link[0]) + self._missed(link[0])]
        return found

    def _missed(self, switch: int) -> list[tuple[int, int]]:
        """The children that a switch adds up, whose late packets it passes on."""
        if self.quorum is None or switch not in self.adding:
            return []
        return self._arriving(switch)

    def _arriving(self, switch: int) -> list[tuple[int, int]]:
        """(child number, port) of all that comes into the switch from below."""
        found = []
        for port in DOWN_PORTS:
            link = self.fabric.links.get((switch, port))
            if link is not None:
                found += [(number, port) for number, _ in self._leaving(link[0])]
            else:
                at = self.fabric.host_at(switch, port)
                found += [(number, port) for number, host in enumerate(self.hosts) if host == at]
        return found

    def _leaving(self, switch: int) -> list[tuple[int, int]]:
        """Returns the packets that leave at the top of a switch."""
        arriving = self._arriving(switch)
        return [(NODE + switch, UPLINK)] if switch in self.adding and arriving else arriving
