# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Multicast groups: the ports by which a switch sends a tree's results down."""

from __future__ import annotations

from collections.abc import Iterable

from netfold.controller.switches.entries import MulticastGroup


def down(tree: int, ports: Iterable[int]) -> MulticastGroup:
    """The group of a tree bears the tree's number."""
    return MulticastGroup(tree, tuple(sorted(set(ports))))
