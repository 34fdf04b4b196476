# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Commands about mirroring, multicast, ports and their queues."""

from __future__ import annotations

from softswitch.admin.verbs import arguments as args
from softswitch.admin.verbs.arguments import CommandError, Target
from softswitch.engine.engine import PortStatus
from softswitch.errors import NotFoundError, SwitchError
from softswitch.state.entities import CloneSession, Replica

PORT_MAX = 65535


def _port(text: str) -> int:
    return args.number(text, "port", PORT_MAX)


# ---- mirroring ----


def mirroring_add(target: Target, session: str, port: str) -> str:
    """Send the clones of a session out of a port: mirroring_add <mirror_id> <egress_port>"""
    _set_session(target, CloneSession(args.number(session, "mirror id"), [Replica(_port(port))]))
    return ""


def mirroring_add_mc(target: Target, session: str, group: str) -> str:
    """Send the clones of a session to what a multicast group is now: mirroring_add_mc <mirror_id> <mgrp>"""
    replicas = target.pipeline.multicast_groups().get(args.number(group, "multicast group"))
    if replicas is None:
        raise CommandError(f"there is no multicast group {group}")
    _set_session(target, CloneSession(args.number(session, "mirror id"), replicas))
    return ""


def _set_session(target: Target, session: CloneSession) -> None:
    try:
        target.pipeline.clone_modify(session)
    except NotFoundError:
        target.pipeline.clone_insert(session)


def mirroring_delete(target: Target, session: str) -> str:
    """Delete a mirroring session: mirroring_delete <mirror_id>"""
    target.pipeline.clone_delete(args.number(session, "mirror id"))
    return ""


def mirroring_get(target: Target, session: str) -> str:
    """Show a mirroring session: mirroring_get <mirror_id>"""
    wanted = args.number(session, "mirror id")
    found = target.pipeline.clone_sessions().get(wanted)
    if found is None:
        raise CommandError(f"there is no mirroring session {wanted}")
    return ", ".join(f"port {r.port} rid {r.instance}" for r in found.replicas) or "nothing"


# ---- multicast: a node is a rid with ports; a group is a list of nodes ----


def mc_mgrp_create(target: Target, group: str) -> str:
    """Create a multicast group: mc_mgrp_create <group id>"""
    target.pipeline.multicast_insert(args.number(group, "multicast group"), [])
    return f"Creating multicast group {group}"


def mc_mgrp_destroy(target: Target, group: str) -> str:
    """Delete a multicast group: mc_mgrp_destroy <group id>"""
    wanted = args.number(group, "multicast group")
    target.pipeline.multicast_delete(wanted)
    _nodes(target).groups.pop(wanted, None)
    return f"Destroying multicast group {group}"


def mc_node_create(target: Target, rid: str, *ports: str) -> str:
    """Create a node, which is ports that share a rid: mc_node_create <rid> <ports>"""
    return f"node was created with handle {_nodes(target).add(args.number(rid, 'rid', PORT_MAX), ports)}"


def mc_node_update(target: Target, node: str, *ports: str) -> str:
    """Change a node's ports: mc_node_update <node handle> <ports>"""
    nodes = _nodes(target)
    handle = nodes.known(node)
    nodes.set_ports(target, handle, tuple(_port(p) for p in ports))
    return f"Updating node {handle}"


def mc_node_associate(target: Target, group: str, node: str) -> str:
    """Put a node into a group: mc_node_associate <group id> <node handle>"""
    nodes, wanted = _nodes(target), args.number(group, "multicast group")
    handle = nodes.known(node)
    nodes.set_group(target, wanted, [*nodes.groups.get(wanted, []), handle])
    return f"Associating node {handle} to multicast group {wanted}"


def mc_node_dissociate(target: Target, group: str, node: str) -> str:
    """Take a node out of a group: mc_node_dissociate <group id> <node handle>"""
    nodes, wanted = _nodes(target), args.number(group, "multicast group")
    handle = nodes.known(node)
    if handle not in nodes.groups.get(wanted, []):
        raise CommandError(f"node {handle} is not in multicast group {wanted}")
    nodes.set_group(target, wanted, [other for other in nodes.groups[wanted] if other != handle])
    return f"Dissociating node {handle} from multicast group {wanted}"


def mc_node_destroy(target: Target, node: str) -> str:
    """Delete a node, from its groups too: mc_node_destroy <node handle>"""
    nodes = _nodes(target)
    handle = nodes.known(node)
    for group in nodes.groups_of(handle):
        nodes.set_group(target, group, [other for other in nodes.groups[group] if other != handle])
    del nodes.ports[handle]
    return f"Destroying node {handle}"


def mc_dump(target: Target) -> str:
    """Show all multicast groups, including those of P4Runtime: mc_dump"""
    lines = ["==========", "MC ENTRIES"]
    for group, replicas in sorted(target.pipeline.multicast_groups().items()):
        lines += ["**********", f"mgrp({group})"]
        rids = dict.fromkeys(r.instance for r in replicas)
        lines += [
            f"  -> (rid={rid}) -> (ports=[{', '.join(str(r.port) for r in replicas if r.instance == rid)}])"
            for rid in rids
        ]
    return args.listed([*lines, "=========="])


class Nodes:
    """Multicast nodes that commands have made, for one program: P4Runtime and the core know groups only. A command
    that the switch refuses changes nothing here."""

    def __init__(self) -> None:
        self.ports: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.groups: dict[int, list[int]] = {}
        self._next = 0

    def add(self, rid: int, ports: tuple[str, ...]) -> int:
        handle, self._next = self._next, self._next + 1
        self.ports[handle] = (rid, tuple(_port(p) for p in ports))
        return handle

    def known(self, text: str) -> int:
        handle = args.number(text, "node handle")
        if handle not in self.ports:
            raise CommandError(f"there is no node with handle {handle}")
        return handle

    def groups_of(self, node: int) -> list[int]:
        return [group for group, nodes in self.groups.items() if node in nodes]

    def set_group(self, target: Target, group: int, handles: list[int]) -> None:
        chosen = [self.ports[handle] for handle in handles]
        replicas = [Replica(port, rid) for rid, ports in chosen for port in ports]
        target.pipeline.multicast_modify(group, replicas)
        self.groups[group] = handles

    def set_ports(self, target: Target, handle: int, ports: tuple[int, ...]) -> None:
        before, groups = self.ports[handle], self.groups_of(handle)
        self.ports[handle] = (before[0], ports)
        try:
            for group in groups:
                self.set_group(target, group, self.groups[group])
        except SwitchError:
            self.ports[handle] = before
            for group in groups:
                self.set_group(target, group, self.groups[group])
            raise


def _nodes(target: Target) -> Nodes:
    return target.nodes_of(target.pipeline, Nodes)


# ---- ports ----


def show_ports(target: Target) -> str:
    """List the ports: show_ports"""
    lines = [f"{'port #':^10}{'iface name':^20}{'status':^10}{'extra info':^20}", "=" * 50]
    return args.listed([*lines, *(_port_line(port) for port in target.engine.ports())])


def _port_line(port: PortStatus) -> str:
    extra = "" if port.up else "waits for its interface"
    return f"{port.number:^10}{port.ifname:^20}{'UP' if port.oper_up else 'DOWN':^10}{extra:^20}".rstrip()


def port_add(target: Target, interface: str, port: str) -> str:
    """Bind a port to an interface: port_add <iface_name> <port_num>"""
    target.engine.add_port(_port(port), interface)
    return ""


def port_remove(target: Target, port: str) -> str:
    """Take a port away: port_remove <port_num>"""
    target.engine.remove_port(_port(port))
    return ""


def set_queue_depth(target: Target, packets: str, port: str | None = None, queue: str | None = None) -> str:
    """Bound all queues, or a port's, or one: set_queue_depth <nb_pkts> [<egress_port> [<priority>]]"""
    bound = args.number(packets, "nb_pkts", 65536)
    for number, index in _queues(target, port, queue):
        target.switch.queue_config(number, index, packets=bound)
    return ""


def set_queue_rate(target: Target, rate: str, port: str | None = None, queue: str | None = None) -> str:
    """Limit all queues, or a port's, or one, 0 = no limit: set_queue_rate <rate_pps> [<egress_port> [<priority>]]"""
    rate_pps = args.number(rate, "rate_pps", (1 << 63) - 1)
    for number, index in _queues(target, port, queue):
        target.switch.queue_config(number, index, rate_pps=rate_pps)
    target.engine.service()
    return ""


def _queues(target: Target, port: str | None, queue: str | None) -> list[tuple[int, int]]:
    ports = [p.number for p in target.engine.ports()] if port is None else [_port(port)]
    last = target.switch.queues - 1
    queues = range(last + 1) if queue is None else [args.number(queue, "priority", last)]
    return [(p, q) for p in ports for q in queues]


VERBS = (
    set_queue_depth,
    set_queue_rate,
    mirroring_add,
    mirroring_add_mc,
    mirroring_delete,
    mirroring_get,
    mc_mgrp_create,
    mc_mgrp_destroy,
    mc_node_create,
    mc_node_update,
    mc_node_associate,
    mc_node_dissociate,
    mc_node_destroy,
    mc_dump,
    show_ports,
    port_add,
    port_remove,
)
