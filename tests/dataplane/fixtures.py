# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The switch most tests look at: hosts at ports 1 to 3, another switch at port 4, a parameter server at port 5."""

from __future__ import annotations

from netfold.controller.switches.tables import MANAGEMENT_PORT
from netfold.protocol.wire import Kind
from tests.dataplane.frames import ECT0, JOB_PORT, LANES, Ip, Netfold, gradient
from tests.dataplane.node import ArpAnswer, Child, Management, Neighbor, Pass, Route, TreeAt

TREE, EPOCH, SLOTS = 7, 3, 4
ROOT_ADDRESS = "10.0.0.100"
OWN_MAC = "02:00:00:00:01:00"
UPLINK, SERVER = 4, 5

HOSTS = tuple(
    Neighbor(port, f"02:00:00:00:01:{port:02x}", f"02:00:00:00:00:{port:02x}", f"10.0.0.{port}")
    for port in (1, 2, 3)
)
SETTINGS = (
    *HOSTS,
    Neighbor(UPLINK, "02:00:00:00:01:04", "02:00:00:00:02:04"),
    Neighbor(SERVER, "02:00:00:00:01:05", "02:00:00:00:00:05", "10.0.0.5"),
    Route("10.0.0.1/32", (1,)),
    Route("10.0.0.2/32", (2,)),
    Route("10.0.0.0/24", (3,)),
    Route("10.1.0.0/16", (UPLINK,)),
    ArpAnswer("10.0.0.0/16", OWN_MAC),
    Management(),
)


def root(workers: int = 2, *, slots: int = SLOTS, base: int = 0, tree: int = TREE) -> TreeAt:
    """This switch turns the sum of hosts 1 ... `workers` around; worker `p` is child `p` at port `p`."""
    ports = tuple(range(1, workers + 1))
    children = tuple(Child(port, port) for port in ports)
    return TreeAt(tree, EPOCH, slots, base, root=True, children=children, down=ports)


def inner(workers: int = 2, *, child: int = 40, slots: int = SLOTS) -> TreeAt:
    """This switch sends the sum of its hosts up by port 4 as `child`, and results from there down."""
    ports = tuple(range(1, workers + 1))
    children = tuple(Child(port, port) for port in ports)
    return TreeAt(TREE, EPOCH, slots, children=children, up=(UPLINK, child), results_from=UPLINK, down=ports)


def passing(*ports: int) -> TreeAt:
    """This switch lies on the way of hosts' packets to port 4, and relays the results."""
    ways = tuple(Pass(port, port, UPLINK) for port in ports)
    return TreeAt(TREE, EPOCH, SLOTS, passes=ways, results_from=UPLINK, down=ports)


def sent(worker: int, value: int | list[int] = 1, **fields: int) -> bytes:
    """A gradient of a worker: all lanes `value`, or those. `fields` are those of the header, and ecn, ttl, udp_port."""
    lanes = [value] * LANES if isinstance(value, int) else value
    packet = Ip(
        src=f"10.0.0.{worker}", dst=ROOT_ADDRESS, ecn=fields.pop("ecn", ECT0), ttl=fields.pop("ttl", 64)
    )
    managing = fields.get("kind") in {Kind.READ, Kind.RESET}
    port = fields.pop("udp_port", MANAGEMENT_PORT if managing else JOB_PORT)
    header = Netfold(**{"tree": TREE, "epoch": EPOCH, "child": worker, "lanes": lanes, **fields})
    return gradient(header, packet, port=port)
