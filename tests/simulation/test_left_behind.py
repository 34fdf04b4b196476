# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs leave nothing behind: tasks, reservations, streams, rows and memory do not grow with their number."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from netfold.controller.jobs.slot_allocator import BLOCK
from netfold.controller.jobs.store import HISTORY
from tests.simulation.many_jobs import FABRIC
from tests.simulation.scenario import FABRICS

GROWTH = 0.03
"""The growth of a process between two looks that is allowed, as a fraction: caches fill up."""

BLOCKS = sum(switch.slots // BLOCK for switch in FABRICS[FABRIC]().switches)
TIMEOUT_S = 3000


def _looks_after(*jobs: int) -> list[dict[str, dict[str, int]]]:
    """In a process of its own: what other tests have left in this one comes and goes."""
    command = [sys.executable, "-m", "tests.simulation", "--jobs", ",".join(map(str, jobs))]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    looks: list[dict[str, dict[str, int]]] = [json.loads(line) for line in done.stdout.splitlines()]
    return looks


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "looks_at",
    [
        pytest.param((HISTORY + 40, HISTORY + 120), id="few jobs"),
        pytest.param((2_000, 10_000), id="10000 jobs", marks=pytest.mark.long),
    ],
)
def test_jobs_leave_nothing_behind(looks_at: tuple[int, int]) -> None:
    first, last = _looks_after(*looks_at)
    before, after = first["objects"], last["objects"]
    more = {k: (before.get(k, 0), n) for k, n in after.items() if n > 50 + (1 + GROWTH) * before.get(k, 0)}
    assert not more, f"objects of these types grow from {looks_at[0]} to {looks_at[1]} jobs: {more}"
    blocks = first["memory"]["blocks"], last["memory"]["blocks"]
    assert blocks[1] < (1 + GROWTH) * blocks[0], f"memory grows: {blocks} blocks"
    assert last["rows"]["jobs"] == HISTORY
    assert last["rows"]["epochs"] <= BLOCKS, "blocks of slots that have seen an epoch"
    rows = [sum(n for kind, n in look["rows"].items() if kind != "epochs") for look in (first, last)]
    assert rows[1] < 1.1 * rows[0], f"rows grow: {first['rows']}, {last['rows']}"
