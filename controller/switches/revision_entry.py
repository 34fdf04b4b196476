# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Stores the revision of the slots of a switch as an entry of the switch. A store that is restored from a backup has
old epochs; the entry is the proof of the switch itself that it has seen newer ones.

The entry matches no packet that is ever sent, and refuses as a miss does. It is written before the entries that admit
packets of a new epoch (install.py), so a switch has seen no epoch that is newer than its entry."""

from __future__ import annotations

from netfold.controller.jobs.revisions import REVISIONS, TERMS, Revision
from netfold.controller.switches.entries import Contents, Field, TableEntry
from netfold.controller.switches.tables import MANAGEMENT_PORT, refuse_all
from netfold.protocol.wire import Kind

_KIND = Kind.RESULT
"""Kind of packet that the entry matches: under the management tree there are only READ and RESET, so no packet
matches."""

_CHILD, _SLOT = 1 << 16, 1 << 16


def revision_entry(cpu_port: int, management_tree: int, revision: Revision) -> TableEntry:
    number = revision.number % REVISIONS
    return refuse_all(
        {
            "ingress_port": cpu_port,
            "udp_port": MANAGEMENT_PORT,
            "kind": _KIND.value,
            "tree": management_tree,
            "child": (revision.term % TERMS, _CHILD - 1),
            "epoch": (number // _SLOT, REVISIONS // _SLOT - 1),
            "slot": (number % _SLOT, _SLOT - 1),
        }
    )


def revisions_in(contents: Contents, management_tree: int) -> list[Revision]:
    """The revisions of a switch: one, or two if a write was interrupted."""
    found = []
    for entity in contents.values():
        if isinstance(entity, TableEntry) and entity.table == "admission":
            match = dict(entity.match)
            if (match["tree"], match["kind"]) == (management_tree, _KIND.value):
                number = _value(match.get("epoch", 0)) * _SLOT + _value(match.get("slot", 0))
                found.append(Revision(_value(match.get("child", 0)), number))
    return found


def _value(field: Field) -> int:
    return field if isinstance(field, int) else field[0]
