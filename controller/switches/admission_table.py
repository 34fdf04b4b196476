# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The table `admission` (p4src/common/admission.p4): who may send what from which port, and what the
switch is to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from netfold.controller.switches.entries import Action, Field, TableEntry, action, entry
from netfold.traffic.packets.wire import PORT_FIRST, Kind, Verdict

CPU_PORT = 510
MANAGEMENT_PORT = PORT_FIRST
"""UDP, from and to. Jobs may use it as well: a packet's kind and tree tell them apart."""

_ACCEPT, _WRONG_SLOT, _WRONG_EPOCH = 30, 20, 10
_CHILD_MASK, _EPOCH_MASK, _SLOT_MASK = 0xFFFF, 0xFFF, 0xFFFF


@dataclass(frozen=True)
class Sender:
    """A child of a tree as a switch sees it: `port` is where its packets come in, `udp_port` the job's. `slots` is the
    tree's A."""

    port: int
    udp_port: int
    tree: int
    child: int
    epoch: int
    slots: int


def added_up(sender: Sender, *, root: bool, bit: int, full: int, base: int) -> Iterator[TableEntry]:
    """A child whose packets this switch adds up, and the two entries that say why it refuses others of it."""
    name = "add_at_root" if root else "add_at_inner"
    add = action(name, tree_index=sender.tree, bit_of_child=1 << bit, full=full, base=base)
    yield _gradient(sender, add)
    in_epoch = _in_epoch(sender, Kind.GRADIENT)
    yield entry("admission", in_epoch, _refuse(sender.tree, Verdict.BAD_SLOT), priority=_WRONG_SLOT)
    yield entry(
        "admission",
        _in_any_epoch(sender, Kind.GRADIENT),
        _refuse(sender.tree, Verdict.STALE_EPOCH),
        priority=_WRONG_EPOCH,
    )


def passed_up(sender: Sender, to_port: int) -> TableEntry:
    """A child whose packets go on unchanged towards their node."""
    return _gradient(sender, action("pass", tree_index=sender.tree, port=to_port))


def relayed(port: int, udp_port: int, tree: int, epoch: int) -> TableEntry:
    """Results come in from `port`, towards the root, and leave by the tree's multicast group."""
    match: dict[str, Field] = {
        "ingress_port": port,
        "udp_port": udp_port,
        "kind": Kind.RESULT.value,
        "tree": tree,
        "epoch": (epoch, _EPOCH_MASK),
    }
    return entry("admission", match, action("relay", tree_index=tree), priority=_ACCEPT)


def answer_passed(sender: Sender, to_port: int) -> TableEntry:
    """A result repeated for one child alone that comes back along the child's own way up, where no result
    flows."""
    match = _in_epoch(sender, Kind.RESULT)
    return entry("admission", match, action("pass", tree_index=sender.tree, port=to_port), priority=_ACCEPT)


def managed(port: int, mark: int, *kinds: Kind) -> Iterator[TableEntry]:
    """READ or RESET of any slot, under the tree number `mark`."""
    for kind in kinds:
        match: dict[str, Field] = {
            "ingress_port": port,
            "udp_port": MANAGEMENT_PORT,
            "kind": kind.value,
            "tree": mark,
        }
        yield entry("admission", match, action("manage", tree_index=0, base=0), priority=_ACCEPT)


def is_management(held: TableEntry) -> bool:
    return any(a.name == "manage" for a in held.actions)


def is_refusal(held: TableEntry) -> bool:
    """An entry that only says why a packet is refused."""
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
