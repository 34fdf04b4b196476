# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes multicast groups: the ports by which the results of a tree leave a switch."""

from __future__ import annotations

from collections.abc import Iterable

from netfold.controller.switches.entries import MulticastGroup


def result_group(tree: int, ports: Iterable[int]) -> MulticastGroup:
    """The group of a tree; its number is the tree number."""
    return MulticastGroup(tree, tuple(sorted(set(ports))))
