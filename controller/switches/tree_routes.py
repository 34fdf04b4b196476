# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The tables `uplink` and `downlink` (p4src/common/tree_routes.p4): where a tree's packets leave a switch; and
`quorums` (p4src/quorum/on.p4): how many contributions are enough to seal a sum."""

from __future__ import annotations

from netfold.controller.switches.entries import TableEntry, action, entry


def uplink(tree: int, port: int, child: int) -> TableEntry:
    """An inner node's partial sums leave by `port` with `child`, the node's own number."""
    return entry("uplink", {"tree_index": tree}, action("up", port=port, child=child))


def downlink(tree: int, group: int) -> TableEntry:
    """Results leave by a multicast group."""
    return entry("downlink", {"tree_index": tree}, action("down", group=group))


def quorum(tree: int, min_contributions: int) -> TableEntry:
    """At the root a sum may be sealed with `min_contributions` once a deadline has passed; 0 at an inner node: any."""
    return entry("quorums", {"tree_index": tree}, action("set_quorum", min_contributions=min_contributions))
