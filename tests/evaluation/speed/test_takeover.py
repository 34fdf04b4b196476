# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The experiment of takeovers runs, on few jobs: no time is checked."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from netfold.evaluation.core.command import Words
from netfold.evaluation.core.output import Output, evaluate
from netfold.evaluation.speed.store_times import many_jobs
from netfold.evaluation.speed.takeover import ETCD, JOB_GOALS_S, SQLITE, Takeover, TakeoverFault

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("etcd") is None, reason="SKIPPED: needs etcd on PATH"),
]


def test_controllers_are_stopped_and_cut_off(tmp_path: Path):
    faults = (TakeoverFault.STEP_DOWN, TakeoverFault.LEADER_CUT, TakeoverFault.BOTH_KILLED)
    experiment = Takeover(1, Words(("faults",)), Words(fault.name.lower() for fault in faults))
    rows = evaluate(experiment, Output(as_json=True, out=tmp_path))
    expected = [(TakeoverFault.STEP_DOWN, SQLITE), *((fault, ETCD) for fault in faults)]
    assert [(row.what, row.store) for row in rows] == expected
    assert all(0 < row.p50_s <= row.p99_s for row in rows)


def test_stores_are_changed_and_controllers_lead_with_many_jobs(tmp_path: Path):
    experiment = Takeover(1, Words(("changes", "jobs")), jobs=2, large=1)
    rows = evaluate(experiment, Output(as_json=True, out=tmp_path))
    assert {row.store for row in rows} == {SQLITE, ETCD}
    assert [row.what for row in rows if row.part == "jobs"] == 2 * list(JOB_GOALS_S)
    assert all(row.p50_s > 0 for row in rows)


def test_many_jobs_share_a_spine_and_no_tree_number():
    records = many_jobs(1000, 10).records
    numbers = [tree.tree for record in records for tree in record.placement.trees]
    assert len(set(numbers)) == len(numbers) == 1000 + 2 * 10
    assert all("spine1" in record.placement.trees[0].bases for record in records)
