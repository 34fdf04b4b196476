# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the successor of each worker in a job of `transport: roce`: a ring of the workers of each leaf, in the order of
ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from netfold.topologies.fabric import Fabric


def rings(fabric: Fabric, workers: Iterable[str]) -> dict[str, list[str]]:
    """The workers of each leaf; each sends to the next, the last one to the first."""
    found: dict[str, list[str]] = defaultdict(list)
    for worker in workers:
        found[fabric.attachment(worker)].append(worker)
    return dict(found)


def successors(fabric: Fabric, workers: Iterable[str]) -> dict[str, str]:
    """For each worker, the worker to which it sends."""
    return {
        a: b
        for ring in rings(fabric, workers).values()
        for a, b in zip(ring, [*ring[1:], *ring[:1]], strict=True)
    }


def unpaired_worker(fabric: Fabric, workers: Iterable[str]) -> str:
    """A message about the first leaf that has only one of these workers, which then has no partner in a ring; "" if
    there is none."""
    for leaf, ring in rings(fabric, workers).items():
        if len(ring) == 1:
            return (
                f"'{ring[0]}' is the job's only worker at {leaf}; a RoCE worker sends to another one of its leaf: "
                f"name two or more at {leaf}, or none"
            )
    return ""
