# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A run says when its figures, or its failure, may be the machine's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.testbed import cli, processor_load
from netfold.testbed.errors import ProgramSourcesError, RunTimeoutError
from netfold.testbed.processor_load import SAMPLE_S, ProcessorLoad, ProcessorMeter
from netfold.testbed.run import Run, _naming_the_timeout
from netfold.traffic.workloads import benchmark


@pytest.mark.parametrize(
    ("load", "goodput", "expected"),
    [
        (ProcessorLoad(4, 0.2, 0.9), 0.95, ""),
        (ProcessorLoad(4, 0.2, None), 0.1, ""),
        (ProcessorLoad(4, 3.5, None), 0.95, "too busy for these figures: .* 3.5 of 4 processors"),
        (ProcessorLoad(2, 0.0, 0.9), 0.44, "too slow for bmv2 .* 2 processors in 90% of the time"),
        (ProcessorLoad(2, 0.0, 0.9), None, "too slow for bmv2"),
        (ProcessorLoad(2, 0.0, 0.3), None, ""),
    ],
)
def test_the_warning_is_about_the_machine(load: ProcessorLoad, goodput: float | None, expected: str):
    warning = load.warning("bmv2", goodput)
    assert bool(warning) == bool(expected)
    assert re.search(expected, warning), warning


def test_the_meter_counts_what_others_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stat, pressure = tmp_path / "stat", tmp_path / "pressure"
    stat.write_text("cpu 100 0 100 5000 0 0 0 0 0 0\n")
    pressure.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 total=0\n")
    monkeypatch.setattr(benchmark, "_STAT", stat)
    monkeypatch.setattr(processor_load, "_PRESSURE", pressure)
    monkeypatch.setattr(processor_load, "_TICKS_PER_S", 100)
    now = [50.0]
    monkeypatch.setattr(processor_load.time, "monotonic", lambda: now[0])

    def sleep(seconds: float) -> None:
        now[0] += seconds
        stat.write_text("cpu 175 0 100 5025 0 0 0 0 0 0\n")  # 0.75 s more of one processor

    meter = ProcessorMeter(sleep)
    now[0] += 10
    pressure.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=4001000\nfull avg10=0.00 total=0\n")
    load = meter.read()
    assert load.busy_before == pytest.approx(0.75 / SAMPLE_S)
    assert load.waiting == pytest.approx(0.4)
    pressure.unlink()
    assert ProcessorMeter(sleep).read().waiting is None


def test_a_failed_run_names_the_load(monkeypatch: pytest.MonkeyPatch):
    def execute(run: Run) -> None:
        with _naming_the_timeout():
            raise RunTimeoutError("h1 did not finish within 120 s")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(Run, "execute", execute)
    monkeypatch.setattr(Run, "failure_notes", lambda _: "this machine is too slow")
    result = CliRunner().invoke(cli.run, [])
    assert result.exit_code == 1
    line = "h1 did not finish within 120 s; --timeout SECONDS allows more (this machine is too slow)"
    assert f"netfold: {line}" in result.output.splitlines()


def test_changed_sources_have_nothing_to_do_with_the_load(monkeypatch: pytest.MonkeyPatch):
    def execute(run: Run) -> None:
        raise ProgramSourcesError("p4src/common/sizes.p4 has changed")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(Run, "execute", execute)
    monkeypatch.setattr(Run, "failure_notes", lambda _: "this machine is too slow")
    result = CliRunner().invoke(cli.run, [])
    assert result.exit_code == 1
    assert "netfold: p4src/common/sizes.p4 has changed" in result.output.splitlines()
