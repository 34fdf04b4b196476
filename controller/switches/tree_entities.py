# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the switch entities of a tree: contributions up, results down, and resent results to the child that requested
them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from netfold.controller.planning.pipes import Loop, loops
from netfold.controller.planning.plan import Tree
from netfold.controller.switches import tables
from netfold.controller.switches.entries import Entity
from netfold.controller.switches.tree_feature import InstalledTree, SwitchFeature, TreeFeature
from netfold.topologies.fabric import Fabric


class UnroutableError(Exception):
    """Resent results cannot reach the child that requests them; the message names it."""


def tree_entities(
    installed: InstalledTree, known_features: Iterable[SwitchFeature] = ()
) -> Iterator[tuple[str, Entity]]:
    """All entities of a tree, each with its switch. Raises UnroutableError."""
    features = [f for known in known_features if (f := known.tree_feature(installed)) is not None]
    looped = loops(installed.fabric, installed.tree)
    for number in range(len(installed.tree.edges)):
        yield from _contributions(installed, features, number, looped.get(number))
    yield from _results(installed)
    for feature in features:
        yield from feature.entities()
    if not installed.fabric.is_host(installed.tree.root):
        yield from _resent_results(installed, features)


def _contributions(
    installed: InstalledTree, features: Sequence[TreeFeature], number: int, loop: Loop | None
) -> Iterator[tuple[str, Entity]]:
    """Entities for packets of one edge: forwarded along its path, accumulated at its parent."""
    fabric, tree = installed.fabric, installed.tree
    edge = tree.edges[number]
    path = edge.path

    def entry_port(at: str, previous: str) -> int:
        port = fabric.ports[at][previous]
        return reduce(lambda p, feature: feature.entry_port(previous, p), features, port)

    if not fabric.is_host(edge.child):
        yield (
            edge.child,
            tables.uplink(installed.numbers.tree, fabric.ports[edge.child][path[1]], number),
        )
    for previous, at, following in zip(path, path[1:], path[2:], strict=False):
        sender = installed.sender(entry_port(at, previous), number)
        yield at, tables.forward_up(sender, fabric.ports[at][following])
    if fabric.is_host(edge.parent):
        return
    children = tree.children(edge.parent)
    sender = installed.sender(entry_port(edge.parent, path[-2]), number)
    if loop is not None:
        yield edge.parent, tables.forward_up(sender, loop.loopback)
        sender = replace(sender, port=loop.loopback)
        if edge.parent == tree.root:
            yield edge.parent, tables.forward_result(sender, loop.entry)
    for entity in tables.accumulate(
        sender,
        root=edge.parent == tree.root,
        bit=children.index(edge.child),
        full=(1 << len(children)) - 1,
        base=installed.numbers.bases[edge.parent],
    ):
        yield edge.parent, entity


def _results(installed: InstalledTree) -> Iterator[tuple[str, Entity]]:
    """The multicast group of the tree in each switch, and the admission of results that come from the root."""
    fabric, number = installed.fabric, installed.numbers.tree
    ports = result_ports(fabric, installed.tree)
    for switch, chosen in ports.items():
        yield switch, tables.result_group(number, chosen)
        yield switch, tables.downlink(number, number)
    for above, at in installed.tree.result_links:
        if at in ports:
            entity = tables.multicast_results(
                fabric.ports[at][above], installed.udp_port, number, installed.epoch
            )
            yield at, entity


def result_ports(fabric: Fabric, tree: Tree) -> dict[str, list[int]]:
    """The ports by which results leave each switch of the result tree."""
    ports: dict[str, list[int]] = defaultdict(list)
    for a, b in tree.result_links:
        if not fabric.is_host(a):
            ports[a].append(fabric.ports[a][b])
    return ports


def _resent_results(
    installed: InstalledTree, features: Sequence[TreeFeature]
) -> Iterator[tuple[str, Entity]]:
    """Entities for resent results. A switch as root resends a result by the port of the request. If that is no link of
    the result tree, the result follows the upstream path of the child back, until it is at the child, or joins the
    result tree above all workers below the child."""
    fabric, tree = installed.fabric, installed.tree
    result_links = set(tree.result_links)
    reached = workers_reached(fabric, tree)
    for number, edge in enumerate(tree.edges):
        if edge.parent != tree.root:
            continue
        wanted = set(tree.workers_below(edge.child))
        back = edge.path[::-1]
        senders = (number, *(n for feature in features for n in feature.late_senders(edge.child)))
        for step in range(1, len(back)):
            above, at = back[step - 1], back[step]
            joins = (above, at) in result_links
            if fabric.is_host(at) or (joins and wanted <= reached[at]):
                break
            if joins:
                raise UnroutableError(
                    f"tree {installed.numbers.tree}: resent results for '{edge.child}' join the result tree at {at}, "
                    f"which does not lead to {min(wanted - reached[at])}"
                )
            port = fabric.ports[at][above]
            if step + 1 < len(back):
                receiver = reduce(lambda host, f: f.resend_receiver(host), features, back[step + 1])
                for sender in senders:
                    request = installed.sender(port, sender)
                    yield at, tables.forward_result(request, fabric.ports[at][receiver])
            elif wanted <= reached[at]:
                yield (
                    at,
                    tables.multicast_results(
                        port, installed.udp_port, installed.numbers.tree, installed.epoch
                    ),
                )
            else:
                raise UnroutableError(
                    f"tree {installed.numbers.tree}: resent results for node {at} do not reach "
                    f"{min(wanted - reached[at])}"
                )


def workers_reached(fabric: Fabric, tree: Tree) -> Mapping[str, set[str]]:
    """The workers that results reach from each switch of the result tree."""
    next_hops: dict[str, list[str]] = defaultdict(list)
    for a, b in tree.result_links:
        next_hops[a].append(b)

    def reached(at: str) -> set[str]:
        return {at} if fabric.is_host(at) else {w for b in next_hops[at] for w in reached(b)}

    return defaultdict(set, {a: reached(a) for a in list(next_hops) if not fabric.is_host(a)})
