# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job moves while TCP fills the spine that it uses: its sums stay exact. And what a row makes of times and epochs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from netfold.controller.drawing.plot import render
from netfold.evaluation.core.command import Floats, Integers, Words
from netfold.evaluation.core.progress import one_by_one
from netfold.evaluation.testbed.reroute import Rerouting
from netfold.evaluation.testbed.reroute_row import Case, Move, reroute_row
from netfold.testbed.errors import RunError


def test_a_row_says_when_it_moved_and_what_that_gave(tmp_path: Path):
    """Iterations of 0.2 s; of 0.5 s from the onset at 110 on, until the move at 112."""
    progress, at = tmp_path / "progress", 100.0
    with progress.open("w") as file:
        while at < 140:
            at += 0.5 if 110 <= at < 112 else 0.2
            file.write(json.dumps({"at": at}) + "\n")
    job = SimpleNamespace(name="re-routed-1-1", progress=progress)
    moves = [Move(100.0, 1, 100.0, ""), Move(112.0, 2, 90.0, "squeezed"), Move(123.0, 3, 100.0, "eased")]
    found = reroute_row(Case(0.7, 1, "re-routed"), job, moves, 110.0, 120.0, 0)  # type: ignore[arg-type]
    assert (found.reaction_s, found.back_s, found.moved) == (2.0, 3.0, [2.0, 13.0])
    assert found.slowdown == pytest.approx(1.0)
    assert found.settled_s == pytest.approx(2.2, abs=0.3)
    assert found.restored_s == pytest.approx(0.2, abs=0.2)
    (plot,) = Rerouting().plots([found])
    assert len(render(plot)) > 1000


def test_an_iteration_longer_than_the_load_is_what_it_took_under_it(tmp_path: Path):
    """No iteration lies within the time that is looked at; figures stay figures, of which JSON has no other kind."""
    progress = tmp_path / "progress"
    progress.write_text("".join(json.dumps({"at": at}) + "\n" for at in (107.0, 108.0, 109.0, 130.0, 131.0)))
    job = SimpleNamespace(name="static-1-1", progress=progress)
    found = reroute_row(Case(0.8, 1, "static"), job, [Move(100.0, 1, 100.0, "")], 110.0, 120.0, 0)  # type: ignore[arg-type]
    assert (found.before_ms, found.under_ms, found.after_ms) == (1000.0, 21000.0, 1000.0)
    assert found.reaction_s is None
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["slowdown"] == 21.0


def test_the_rest_takes_as_long_as_what_is_over_says():
    said: list[str] = []
    times = iter([0.0, 10.0, 400.0])
    assert [*one_by_one([1, 3, 60], str, said.append, float, lambda: next(times))] == [1, 3, 60]
    assert said == ["1 of 3: 1", "2 of 3: 3, about 10 minutes left", "3 of 3: 60, about 100 minutes left"]


def test_what_it_cannot_do_is_said_before_anything_is_brought_up():
    with pytest.raises(RunError, match="unknown mode 'better'"):
        list(Rerouting(modes=Words(["better"])).rows(print))
    with pytest.raises(RunError, match="two racks of three workers"):
        list(Rerouting("single").rows(print))


@pytest.mark.long
@pytest.mark.root
@pytest.mark.mininet
def test_a_job_moves_under_load_and_every_sum_is_right():
    # loads of 90 %: slow machines, on which little is squeezed, have to move too
    experiment = Rerouting(
        "leaf-spine-2x2", Words(["r-inart"]), Integers([1]), 1 << 15, Floats([0.9]), 0.05, 6.0, "softswitch", 64,
        before_s=1.0, after_s=0.5, network="rero", first_grpc_port=9760,
    )  # fmt: skip
    [found] = experiment.rows(lambda text: None)
    assert found.wrong_elements == 0
    assert found.moved


@pytest.mark.long
@pytest.mark.root
@pytest.mark.mininet
@pytest.mark.timeout(900)
def test_two_jobs_do_not_chase_each_other_in_five_minutes():
    """TCP takes all that it can get of a spine. Both jobs go out of its way once, and stay where they are then."""
    five = Rerouting(
        "leaf-spine-4x2", Words(["re-routed"]), Integers([2]), 1 << 16, Floats([1.0]), 0.02, 300.0, "softswitch", 256,
        500.0, network="chase", first_grpc_port=9790,
    )  # fmt: skip
    rows = list(five.rows(lambda text: None))
    assert [r.wrong_elements for r in rows] == [0, 0]
    for r in rows:
        assert [at for at in r.moved if 10 < at < 300] == []
        assert len(r.moved) <= 3
