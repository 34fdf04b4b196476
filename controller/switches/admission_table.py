# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes entries of the table `admission` (p4src/common/admission.p4): which packets of which sender a port admits, and
the role of the switch for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from netfold.controller.switches.entries import Action, Field, TableEntry, action, entry
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


def _refuse(tree: int, reason: Verdict) -> Action:
    return action("refuse", tree_index=tree, reason=reason.value)
