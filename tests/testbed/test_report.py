# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reports: what `netfold run` writes and prints, and what `netfold doctor` says."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from netfold.testbed import cli, doctor
from netfold.testbed.errors import RunError
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.report import AllReduce, Bound, FastLinks, RunReport, bound_of
from netfold.testbed.roce import taps
from netfold.testbed.roce.lab import Lab

PROMISED = {
    "accuracy", "reference_accuracy", "wrong_elements", "target", "workers", "link_mbps", "allreduce_ms_p50",
    "allreduce_ms_p99", "algbw_mbps", "goodput_mbps_per_worker", "retransmits", "ring_algbw_mbps",
}  # fmt: skip


@pytest.fixture
def report() -> RunReport:
    trained = AllReduce(ms_p50=5.0, ms_p99=9.0, algbw_mbps=40.0, wrong_elements=0, checked_elements=100)
    return RunReport(
        fabric="leaf-spine-2x2",
        target="softswitch",
        network="mininet",
        target_reason="softswitch, the default",
        scheme="panama",
        workers=8,
        lanes=256,
        link_mbps=100.0,
        accuracy=0.9611,
        reference_accuracy=0.9611,
        identical=True,
        wrong_elements=3,
        allreduce_ms_p50=5.0,
        allreduce_ms_p99=9.0,
        bandwidth_bytes=1 << 20,
        algbw_mbps=80.0,
        goodput_mbps_per_worker=80.0,
        goodput_of_link=0.84,
        packets_aggregated=123456,
        retransmits=7,
        probes=5,
        ring_algbw_mbps=None,
        training=trained,
        training_ring=None,
        bandwidth=trained,
        bandwidth_ring=None,
        seconds=42.0,
        switches={"leaf1": {"accumulated": 11}, "spine1": {"result_sent": 22}},
        frames_lost=4321,
        restarted="spine1",
    )


def test_the_json_has_what_is_promised(report: RunReport) -> None:
    written = json.loads(report.to_json())
    assert written.keys() >= PROMISED
    assert written["wrong_elements"] == 3
    assert written["training"]["ms_p99"] == 9.0
    assert written["switches"]["spine1"] == {"result_sent": 22}


def test_a_second_table_has_the_rates_over_fast_links(report: RunReport) -> None:
    netfold = AllReduce(ms_p50=21.5, ms_p99=30.0, algbw_mbps=391.2, wrong_elements=0, checked_elements=100)
    ring = AllReduce(ms_p50=44.0, ms_p99=50.0, algbw_mbps=190.6, wrong_elements=0, checked_elements=100)
    fast = dataclasses.replace(report, fast=FastLinks(1000.0, netfold, ring, identical=True))
    console = Console(width=120)
    with console.capture() as captured:
        console.print(fast.render())
        console.print("end of the first", report.render())
    first, _, without = captured.get().partition("end of the first")
    assert "1 MiB over links of 1,000 Mbit/s, as far as this machine carries them" in " ".join(first.split())
    for shown in ("391.20", "190.60", "3 of 300 checked"):
        assert shown in first
    assert "1,000 Mbit/s" not in without
    assert json.loads(fast.to_json())["fast"]["netfold"]["algbw_mbps"] == 391.2


def measured(ms_p50: float, algbw_mbps: float, busy: float = 0.1) -> AllReduce:
    return AllReduce(
        ms_p50=ms_p50, ms_p99=60.0, algbw_mbps=algbw_mbps, wrong_elements=0, checked_elements=100, busy=busy
    )


def test_the_tables_say_what_bounded_each_row(report: RunReport) -> None:
    """A ring of eight sends 1.75 times the array. Links come first: they may be full while processors are busy, too."""
    assert bound_of(measured(1.0, 499.0, busy=0.1), 1000.0) is Bound.LATENCY
    assert bound_of(measured(1.0, 499.0, busy=0.9), 1000.0) is Bound.PROCESSORS
    assert bound_of(measured(1.0, 500.0, busy=0.9), 1000.0) is Bound.LINKS
    fast = FastLinks(
        1000.0, measured(30.0, 391.0, busy=0.95), measured(27.0, 300.0, busy=0.95), identical=True
    )
    whole = dataclasses.replace(report, bandwidth=measured(9.0, 20.0), fast=fast)
    console = Console(width=120)
    with console.capture() as captured:
        console.print(whole.render())
    rows = [line.replace("│", " ").split() for line in captured.get().splitlines()]
    ends = [row[-1] for row in rows if row and row[-1] in set(Bound)]
    assert ends == ["latency", "latency", "processors", "links"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "3 elements are WRONG."),
        ({"wrong_elements": 0}, "No sum is wrong."),
        (
            {"wrong_elements": 0, "bandwidth_ring": measured(10.5, 40.0)},
            "No sum is wrong; an all-reduce of 1 MiB is 2.1 times as fast as the TCP ring's over 100 Mbit/s.",
        ),
        (
            {
                "wrong_elements": 0,
                "bandwidth_ring": measured(10.5, 40.0),
                "fast": FastLinks(
                    1000.0, measured(30.0, 391.0, busy=0.95), measured(27.0, 400.0), identical=True
                ),
            },
            "No sum is wrong; an all-reduce of 1 MiB is 2.1 times as fast as the TCP ring's over 100 Mbit/s, "
            "0.9 times over 1,000 Mbit/s, where this machine's processors are the limit.",
        ),
    ],
    ids=["wrong", "alone", "compared with the ring", "fast links"],
)
def test_a_report_ends_with_a_sentence(report: RunReport, changes: dict[str, Any], said: str) -> None:
    console = Console(width=1000)
    with console.capture() as captured:
        console.print(dataclasses.replace(report, **changes).render())
    assert captured.get().splitlines()[-1] == said


def test_the_table_shows_errors_rates_and_every_switch(report: RunReport) -> None:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(report.render())
    text = captured.get()
    for shown in (
        "softswitch, the default",
        "0.9611",
        "3 of 200 checked",
        "84%",
        "123,456",
        "1 MiB",
        "4,321",
        "restarted during the training",
        "leaf1",
        "spine1",
        "result_sent",
    ):
        assert shown in text


def test_a_goodput_of_a_model_is_not_shown_as_none_at_all(report: RunReport) -> None:
    slow = dataclasses.replace(report, goodput_mbps_per_worker=0.033)
    console = Console(width=120)
    with console.capture() as captured:
        console.print(slow.render())
    assert "0.033 Mbit/s" in captured.get()


def test_doctor_says_what_is_missing_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = {f.name: f for f in doctor.examine() if f.found is None}
    assert "apt-get install gcc" in missing["gcc"].remedy
    assert not missing["gcc"].ok
    assert missing["p4c-bm2-ss"].ok, "the P4 compiler is optional"
    assert "p4lang" in missing["simple_switch_grpc"].remedy


@pytest.mark.parametrize(
    ("missing", "code", "said"),
    [
        ([], 0, "Ready: netfold run works here. 0 optional things are missing."),
        (["torch"], 0, "Ready: netfold run works here. 1 optional thing is missing."),
        (["torch", "gcc", "ip[all]"], 1, "Not ready: gcc, ip[all] missing."),
    ],
)
def test_doctor_ends_with_a_verdict(
    monkeypatch: pytest.MonkeyPatch, missing: list[str], code: int, said: str
) -> None:
    needs = {"gcc": doctor.Need.REQUIRED, "ip[all]": doctor.Need.REQUIRED, "torch": doctor.Need.OPTIONAL}
    found = [
        doctor.Finding(n, need, "use", None if n in missing else "/n", "get") for n, need in needs.items()
    ]
    monkeypatch.setattr(doctor, "examine", lambda: found)
    result = CliRunner().invoke(cli.doctor, [])
    assert (result.exit_code, result.output.splitlines()[-1]) == (code, said)
    assert result.output.count("use: get") == len(missing)


def test_doctor_says_which_networks_work_and_what_forbids_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def try_mode(mode: NetworkMode) -> str | None:
        return None if mode is NetworkMode.USERLAND else f"{mode}: a seccomp filter"

    monkeypatch.setattr(doctor, "try_mode", try_mode)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    found = {f.name: f for f in doctor.examine()}
    assert found["--network userland"].found == "works"
    for mode in ("mininet", "rootless"):
        finding = found[f"--network {mode}"]
        assert (finding.found, finding.remedy, finding.ok) == (None, f"{mode}: a seccomp filter", True)
    assert found["mnexec"].need is doctor.Need.OPTIONAL, "of no use without namespaces"


@pytest.mark.parametrize(
    ("is_there", "remedy"), [(True, "root has to open it"), (False, "root has to load its module")]
)
def test_doctor_and_a_lab_say_that_a_user_can_make_no_taps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_there: bool, remedy: str
) -> None:
    device = tmp_path / "tun"
    monkeypatch.setattr(taps, "TUN", device)
    if is_there:
        device.touch()
        assert taps.find_obstacle() is None
        monkeypatch.setattr("os.access", lambda path, mode: path != device)
    finding = {f.name: f for f in doctor.examine()}[str(device)]
    assert (finding.found, finding.ok) == (None, True)
    assert remedy in finding.remedy
    monkeypatch.setattr("shutil.which", lambda name, path=None: f"/usr/bin/{name}")
    with pytest.raises(RunError, match=remedy), Lab():
        pass


def test_doctor_names_sudo_for_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "try_mode", lambda mode: None)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda name, path=None: f"/usr/bin/{name}")
    found = {f.name: f for f in doctor.examine()}
    assert found["--network mininet"].found == "through sudo (/usr/bin/sudo)"
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    found = {f.name: f for f in doctor.examine()}
    assert (found["--network mininet"].found, found["--network rootless"].found) == (None, "works")
    assert found["mnexec"].need is doctor.Need.REQUIRED


def test_doctor_names_the_packages_of_an_extra_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in ("finsy", "rich"):
            raise importlib.metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = {f.name: f for f in doctor.examine()}
    controller = found["netfold[controller]"]
    assert (controller.found, found["netfold[sim]"].found) == (None, None), "sim includes controller"
    assert found["netfold[switch]"].found == "all packages"
    assert controller.remedy.startswith("pip install 'netfold[controller]' (missing: ")
    assert sorted(re.findall(r"finsy|pydantic|rich", controller.remedy)) == ["finsy", "rich"]


def test_doctor_prints_extras_as_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    shown = CliRunner().invoke(cli.doctor, []).output
    assert "netfold[controller]" in shown
    assert "netfold[sim]" in shown


def test_doctor_sees_the_environment_of_p4runtime_shell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NETFOLD_P4RT_SHELL", sys.executable)
    shell = next(f for f in doctor.examine() if f.name == "p4runtime-shell")
    assert shell.found == sys.executable
    monkeypatch.setenv("NETFOLD_P4RT_SHELL", str(tmp_path))
    assert next(f for f in doctor.examine() if f.name == "p4runtime-shell").found is None


def test_doctor_sees_the_environment_of_pytorch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / ".venv-torch/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()
    monkeypatch.setattr("sys.prefix", str(tmp_path / ".venv"))
    monkeypatch.setattr(doctor, "_module", lambda name: None)
    torch = next(f for f in doctor.examine() if f.name == "torch")
    assert torch.found == str(python)


def test_a_report_of_bmv2_says_that_it_measures_bmv2(report: RunReport):
    def shown(target: str) -> str:
        console = Console(width=200, record=True, file=io.StringIO())
        console.print(dataclasses.replace(report, target=target).render())
        return console.export_text()

    assert "this measures BMv2, not netfold" in shown("bmv2")
    assert "BMv2" not in shown("softswitch")
