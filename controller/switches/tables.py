# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the entries of each table of p4src, the multicast groups of trees, and the cell numbers of the counter
`verdicts`. A function makes one kind of entry; its names are those of the program. The tables of RoCE are in
features/roce/tables.py.

admission                      p4src/common/admission.p4      which packets of which sender a port admits, and the role
                                                              of the switch for them
uplink, downlink               p4src/common/tree_routes.p4    the ports by which packets of a tree leave a switch
owners                         p4src/v1model/targets.p4       the port towards the worker that wants, or gives, lanes
quorums                        p4src/quorum/on.p4             contributions that are enough to seal a sum
ipv4_routes, arp_responder     p4src/common/forwarding.p4     packets that are no gradients
hash_seeds                     p4src/common/hash_seed.p4      choice of one of several equal paths
neighbors, ecn_thresholds      p4src/common/delivery.p4       last step before a packet is sent, one entry a port
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network

from netfold.controller.switches.entries import Action, Field, MulticastGroup, TableEntry, action, entry
from netfold.protocol.wire import PORT_FIRST, Kind, Verdict

CPU_PORT = 510
MANAGEMENT_PORT = PORT_FIRST
"""UDP source and destination port. Jobs may use it too: kind and tree distinguish the packets."""

_ACCEPT, _WRONG_SLOT, _WRONG_EPOCH = 30, 20, 10
_CHILD_MASK, _EPOCH_MASK, _SLOT_MASK = 0xFFFF, 0xFFF, 0xFFFF


@dataclass(frozen=True)
class Sender:
    """A child of a tree at a switch: `port` is the ingress port of its packets, `udp_port` the port of the job, `slots`
    A of the tree."""

    port: int
    udp_port: int
    tree: int
    child: int
    epoch: int
    slots: int


def accumulate(sender: Sender, *, root: bool, bit: int, full: int, base: int) -> Iterator[TableEntry]:
    """Entries for a child whose packets this switch accumulates, and the two entries with the reasons for refusing
    other packets of it."""
    name = "add_at_root" if root else "add_at_inner"
    add = action(name, tree_index=sender.tree, child_mask=1 << bit, full_mask=full, base=base)
    yield _gradient(sender, add)
    in_epoch = _in_epoch(sender, Kind.GRADIENT)
    yield entry("admission", in_epoch, _refuse(sender.tree, Verdict.BAD_SLOT), priority=_WRONG_SLOT)
    yield entry(
        "admission",
        _in_any_epoch(sender, Kind.GRADIENT),
        _refuse(sender.tree, Verdict.STALE_EPOCH),
        priority=_WRONG_EPOCH,
    )


def forward_up(sender: Sender, to_port: int) -> TableEntry:
    """An entry for a child whose packets are forwarded unchanged to their node."""
    return _gradient(sender, action("forward", tree_index=sender.tree, port=to_port))


def multicast_results(port: int, udp_port: int, tree: int, epoch: int) -> TableEntry:
    """An entry by which results from `port`, on the side of the root, leave by the multicast group of the tree."""
    match: dict[str, Field] = {
        "ingress_port": port,
        "udp_port": udp_port,
        "kind": Kind.RESULT.value,
        "tree": tree,
        "epoch": (epoch, _EPOCH_MASK),
    }
    return entry("admission", match, action("multicast", tree_index=tree), priority=_ACCEPT)


def forward_result(sender: Sender, to_port: int) -> TableEntry:
    """An entry by which a result that is resent to one child alone returns along the upstream path of the child, which
    may not be on the result tree."""
    match = _in_epoch(sender, Kind.RESULT)
    return entry(
        "admission", match, action("forward", tree_index=sender.tree, port=to_port), priority=_ACCEPT
    )


def slot_access(port: int, tree: int, *kinds: Kind) -> Iterator[TableEntry]:
    """Entries for READ or RESET of any slot, under the management tree."""
    for kind in kinds:
        match: dict[str, Field] = {
            "ingress_port": port,
            "udp_port": MANAGEMENT_PORT,
            "kind": kind.value,
            "tree": tree,
        }
        yield entry("admission", match, action("access_slot", tree_index=0, base=0), priority=_ACCEPT)


def refuse_all(match: dict[str, Field]) -> TableEntry:
    """An entry without effect: a packet that matches it is refused like a packet that matches no entry."""
    return entry("admission", match, _refuse(0, Verdict.UNADMITTED), priority=_WRONG_EPOCH)


def is_management(held: TableEntry) -> bool:
    return any(a.name == "access_slot" for a in held.actions)


def is_refusal(held: TableEntry) -> bool:
    """Whether an entry only has the reason for refusing a packet."""
    return held.priority < _ACCEPT


def _gradient(sender: Sender, chosen: Action) -> TableEntry:
    match = _in_epoch(sender, Kind.GRADIENT)
    if sender.slots <= _SLOT_MASK:
        match["slot"] = (0, _SLOT_MASK & ~(sender.slots - 1))
    return entry("admission", match, chosen, priority=_ACCEPT)


def _in_epoch(sender: Sender, kind: Kind) -> dict[str, Field]:
    return {**_in_any_epoch(sender, kind), "epoch": (sender.epoch, _EPOCH_MASK)}


def _in_any_epoch(sender: Sender, kind: Kind) -> dict[str, Field]:
    return {
        "ingress_port": sender.port,
        "udp_port": sender.udp_port,
        "kind": kind.value,
        "tree": sender.tree,
        "child": (sender.child, _CHILD_MASK),
    }


@lru_cache(maxsize=16)  # of the tree whose entries are made
def _refuse(tree: int, reason: Verdict) -> Action:
    return action("refuse", tree_index=tree, reason=reason.value)


def uplink(tree: int, port: int, child: int) -> TableEntry:
    """An entry by which partial sums of an inner node leave by `port` with `child`, the number of the node."""
    return entry("uplink", {"tree_index": tree}, action("up", port=port, child=child))


def downlink(tree: int, group: int) -> TableEntry:
    """An entry by which results leave by a multicast group."""
    return entry("downlink", {"tree_index": tree}, action("down", group=group))


def owner(tree: int, rank: int, via: int, *, alone: bool) -> TableEntry:
    """The port of the result tree that leads to the worker of a rank; `alone`: and to no other worker."""
    key: dict[str, Field] = {"tree_index": tree, "owner": rank}
    return entry("owners", key, action("lead", via=via, alone=int(alone)))


def quorum(tree: int, min_contributions: int) -> TableEntry:
    """An entry by which the root may seal a sum with `min_contributions` after a deadline; 0 at an inner node: any
    number."""
    return entry("quorums", {"tree_index": tree}, action("set_quorum", min_contributions=min_contributions))


def result_group(tree: int, ports: Iterable[int]) -> MulticastGroup:
    """The multicast group of the ports by which results of a tree leave a switch; its number is the tree number."""
    return MulticastGroup(tree, tuple(sorted(set(ports))))


def route(to: IPv4Network, ports: Iterable[int]) -> TableEntry:
    """An entry for a prefix by one port, or by several as an ECMP set (P4Runtime spec 9.2.3, one-shot)."""
    calls = (action("nexthop", port=p) for p in sorted(set(ports)))
    return entry("ipv4_routes", _prefix("destination", to), *calls)


def hash_seed(device_id: int) -> TableEntry:
    """The switch's own summand of the hash by which ECMP sets share flows, unrelated to those of other ids."""
    digest = hashlib.sha256(device_id.to_bytes(8, "big")).digest()
    return entry(
        "hash_seeds", {"version": 4}, action("set_hash_seed", seed=int.from_bytes(digest[:4], "big"))
    )


def arp_answer(subnet: IPv4Network, mac: str) -> TableEntry:
    """An entry that answers ARP requests for any address of the subnet with the MAC address of the switch."""
    return entry("arp_responder", _prefix("target", subnet), action("reply", mac=mac_number(mac)))


def _prefix(field: str, network: IPv4Network) -> dict[str, int | tuple[int, int]]:
    # in P4Runtime a prefix of length 0 is an absent field
    return {field: (int(network.network_address), network.prefixlen)} if network.prefixlen else {}


def to_host(port: int, src: str, dst: str, address: IPv4Address) -> TableEntry:
    """An entry that addresses packets by `port` to the host there."""
    call = action("to_host", src=mac_number(src), dst=mac_number(dst), address=int(address))
    return entry("neighbors", {"port": port}, call)


def to_switch(port: int, src: str, dst: str) -> TableEntry:
    """An entry that addresses packets by `port` to the switch there."""
    return entry("neighbors", {"port": port}, action("to_switch", src=mac_number(src), dst=mac_number(dst)))


def ecn_threshold(port: int, depth: int) -> TableEntry:
    """An entry that marks ECN-capable packets from a queue depth of `depth` on, in the unit of the switch."""
    return entry("ecn_thresholds", {"port": port}, action("set_ecn_threshold", depth=depth))


def mac_number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


NO_TREE = 0
"""The tree_index of packets that belong to no tree."""

_VERDICTS = 32


def verdict_cell(tree: int, verdict: Verdict) -> int:
    """A cell of the counter `verdicts`: one count per netfold packet (docs/reference/protocol.md, section 4)."""
    return tree * _VERDICTS + verdict
