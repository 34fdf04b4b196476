# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The report of `make roce`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import ClassVar, Self

import pytest
from rich.console import Console

from netfold.testbed.errors import RunError
from netfold.testbed.roce import run
from netfold.testbed.roce.run import RC_COUNTERS, UDP, RoceReport, RoceRun, RoceRunOptions, SizeRow, render
from netfold.traffic.errors import JobFailedError


def test_times_counters_and_verdicts_are_shown_and_written(tmp_path: Path):
    report = RoceReport(
        machines=["h1", "h2"],
        rows=[
            SizeRow("no loss", 4096, 0.5, 0),
            SizeRow("1.0% loss", 16 << 20, 8.0, 2),
            SizeRow("no loss", 4096, 0.125, 0, UDP),
        ],
        counters={"no loss": dict.fromkeys(RC_COUNTERS, 7)},
        verdicts={"no loss": {"leaf1": {"accumulated": 3, "result_sent": 1}}},
        plain={"alone": 2.5, "beside": 1.25},
    )
    shown = io.StringIO()
    Console(file=shown, width=120).print(render(report))
    for words in ("16 MB", "4 KB", "8.000", "accumulated 3, result_sent 1", "beside 1.25 MB/s", UDP):
        assert words in shown.getvalue()
    report.write(tmp_path / "out/roce.json")
    assert json.loads((tmp_path / "out/roce.json").read_text())["rows"][1]["wrong"] == 2
    assert report.wrong == 2


@pytest.mark.parametrize("error", [RunError("h1 did not boot"), JobFailedError("the job has to begin anew")])
def test_what_was_done_before_a_step_failed_is_in_the_report(
    monkeypatch: pytest.MonkeyPatch, error: Exception
):
    class Broken:
        hosts: ClassVar = ["h1", "h2"]

        def __init__(self, *_: object, **__: object) -> None:
            pass

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def boot(self) -> None:
            raise error

        def last_job_reason(self) -> str:
            return "moved"

    monkeypatch.setattr(run, "Lab", Broken)
    done = SizeRow("no loss", 4096, 0.5, 0, UDP)
    monkeypatch.setattr(RoceRun, "_without_machines", lambda self, lab, report: report.rows.append(done))
    report = RoceRun(RoceRunOptions(2, [4096], [0.0], 4096, True, 60.0), lambda text: None).execute()
    assert report.rows == [done]
    assert report.failed == f"{error} (the last job: moved)"
