# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The tables `uplink` and `downlink` (p4src/common/tree_routes.p4): where a tree's packets leave a switch; and
`quorums` (p4src/v1model/quorum.p4): whether its sums may be sealed without everybody."""

from __future__ import annotations

from netfold.controller.switches.entries import TableEntry, action, entry


def uplink(tree: int, port: int, child: int) -> TableEntry:
    """An inner node's sums leave by `port` as those of `child`, its own number."""
    return entry("uplink", {"tree_index": tree}, action("up", port=port, child=child))


def downlink(tree: int, group: int) -> TableEntry:
    """Results leave by a multicast group."""
    return entry("downlink", {"tree_index": tree}, action("down", group=group))


def quorum(tree: int, least: int) -> TableEntry:
    """A sum of the tree may go with so many contributions once a deadline is over; 0 at an inner node."""
    return entry("quorums", {"tree_index": tree}, action("of_tree", least=least))
