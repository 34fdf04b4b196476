# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The lease of a job's members: as its file says, else longer for large jobs."""

from __future__ import annotations

import pytest

from netfold.controller.jobs.file import resolve_job
from netfold.topologies.generators import leaf_spine

FABRIC = leaf_spine(65, 16, 16)
HEARTBEATS_A_LEASE = 3


@pytest.mark.parametrize("workers", [2, 300, 301, 1024, 1040])
def test_members_send_at_most_300_heartbeats_a_second_together(workers: int) -> None:
    lease_ms = resolve_job(f"name: j\nworkers: {workers}\n", FABRIC).lease_ms
    assert HEARTBEATS_A_LEASE * workers / (lease_ms / 1e3) <= 300
    assert lease_ms >= 3000


def test_the_lease_of_a_job_file_is_its_lease() -> None:
    assert resolve_job("name: j\nworkers: 1024\nlease_ms: 3000\n", FABRIC).lease_ms == 3000
