# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What `make roce` shows of what happened."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from netfold.testbed.roce.run import RC_COUNTERS, Report, Row, render


def test_times_counters_and_verdicts_are_shown_and_written(tmp_path: Path):
    report = Report(
        machines=["h1", "h2"],
        rows=[Row("no loss", 4096, 0.5, 0), Row("1.0% loss", 16 << 20, 8.0, 2)],
        counters={"no loss": dict.fromkeys(RC_COUNTERS, 7)},
        verdicts={"no loss": {"leaf1": {"absorbed": 3, "result_sent": 1}}},
        plain={"alone": 2.5, "beside": 1.25},
    )
    shown = io.StringIO()
    Console(file=shown, width=120).print(render(report))
    for words in ("16 MB", "4 KB", "8.000", "absorbed 3, result_sent 1", "beside 1.25 MB/s"):
        assert words in shown.getvalue()
    report.write(tmp_path / "out/roce.json")
    assert json.loads((tmp_path / "out/roce.json").read_text())["rows"][1]["wrong"] == 2
    assert report.wrong == 2
