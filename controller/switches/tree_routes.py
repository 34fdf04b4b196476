# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes entries of the tables `uplink` and `downlink` (p4src/common/tree_routes.p4), by which packets of a tree leave a
switch, and of `quorums` (p4src/quorum/on.p4), with the contributions that are enough to seal a sum."""

from __future__ import annotations

from netfold.controller.switches.entries import TableEntry, action, entry


def uplink(tree: int, port: int, child: int) -> TableEntry:
    """An entry by which partial sums of an inner node leave by `port` with `child`, the number of the node."""
    return entry("uplink", {"tree_index": tree}, action("up", port=port, child=child))


def downlink(tree: int, group: int) -> TableEntry:
    """An entry by which results leave by a multicast group."""
    return entry("downlink", {"tree_index": tree}, action("down", group=group))


def quorum(tree: int, min_contributions: int) -> TableEntry:
    """An entry by which the root may seal a sum with `min_contributions` after a deadline; 0 at an inner node: any
    number."""
    return entry("quorums", {"tree_index": tree}, action("set_quorum", min_contributions=min_contributions))
