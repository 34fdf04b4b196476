# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the pipe of its chip in which a node adds up, and the children that have to be looped into it.

Registers live in one pipe. A child whose packets enter by another pipe is sent out by a port in loopback mode that lies
in the pipe of the node, and comes in there: it passes the switch once more, at the cost of the rate of that port. All
of it follows from the tree and the fabric alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netfold.controller.planning.plan import Edge, InvalidPlanError, Tree
from netfold.topologies.fabric import Fabric, Loopback


@dataclass(frozen=True)
class Loop:
    """A looped child: `entry` is the port of `switch` by which it enters, `loopback` the one to which it is sent."""

    switch: str
    entry: int
    loopback: int


def entry_port(fabric: Fabric, edge: Edge) -> int:
    """The port of the parent, a switch, by which the packets of a child enter."""
    return fabric.ports[edge.parent][edge.path[-2]]


def pipe_of_node(fabric: Fabric, tree: Tree, node: str) -> int:
    """The pipe in which a switch adds up: that of all children, or else, of the pipes with a loopback port, the one
    by which most children enter (all send at one rate); of equal ones that with most room to loop, then the lowest.
    Without any loopback port it is the one by which most enter, and the plan cannot be installed."""
    switch = fabric.switch(node)
    entered = Counter(switch.pipe(entry_port(fabric, e)) for e in tree.edges if e.parent == node)
    if len(entered) == 1:
        return next(iter(entered))
    room: dict[int, float] = defaultdict(float)
    for loopback in switch.loopbacks:
        room[switch.pipe(loopback.port)] += loopback.rate
    return min(room or entered, key=lambda pipe: (-entered[pipe], -room.get(pipe, 0.0), pipe))


def loops(fabric: Fabric, tree: Tree) -> dict[int, Loop]:
    """The looped children of a tree, by the number of their edge. Several loopback ports of a pipe take turns; a
    child without any is left out (see `check_pipes`)."""
    found: dict[int, Loop] = {}
    for node in _nodes_on_chips(fabric, tree):
        switch, pipe = fabric.switch(node), pipe_of_node(fabric, tree, node)
        ports = _loopbacks(fabric, node, pipe)
        for number, edge in enumerate(tree.edges):
            if edge.parent == node and ports:
                entry = entry_port(fabric, edge)
                if switch.pipe(entry) != pipe:
                    found[number] = Loop(node, entry, ports[number % len(ports)].port)
    return found


def loopback_loads(fabric: Fabric, trees: Iterable[Tree], rate: float) -> dict[tuple[str, int], float]:
    """The load of trees at a rate on every loopback port, by (switch, port), in fabric units."""
    loads: dict[tuple[str, int], float] = defaultdict(float)
    for tree in trees:
        for loop in loops(fabric, tree).values():
            loads[loop.switch, loop.loopback] += tree.share * rate
    return dict(loads)


def loopback_rate(fabric: Fabric, switch: str, port: int) -> float:
    """The rate that a loopback port carries; 0 if the port is none."""
    return next((x.rate for x in fabric.switch(switch).loopbacks if x.port == port), 0.0)


def check_pipes(fabric: Fabric, tree: Tree, where: str) -> None:
    """Raise InvalidPlanError, naming switch, children and pipes, if a node's children cannot all reach its pipe."""
    for node in _nodes_on_chips(fabric, tree):
        switch = fabric.switch(node)
        entering: dict[int, list[str]] = defaultdict(list)
        for edge in tree.edges:
            if edge.parent == node:
                entering[switch.pipe(entry_port(fabric, edge))].append(edge.child)
        pipe = pipe_of_node(fabric, tree, node)
        if set(entering) != {pipe} and not _loopbacks(fabric, node, pipe):
            shown = "; ".join(f"by pipe {p} {', '.join(c)}" for p, c in sorted(entering.items()))
            raise InvalidPlanError(
                f"{where}: the children of switch '{node}' enter by several pipes ({shown}), and it has no loopback "
                f"port: one in pipe {pipe} would do, or all children in one pipe"
            )


def _nodes_on_chips(fabric: Fabric, tree: Tree) -> Iterator[str]:
    for node in dict.fromkeys(e.parent for e in tree.edges):
        if not fabric.is_host(node) and fabric.switch(node).chip is not None:
            yield node


def _loopbacks(fabric: Fabric, node: str, pipe: int) -> list[Loopback]:
    switch = fabric.switch(node)
    return [x for x in switch.loopbacks if switch.pipe(x.port) == pipe]
