# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A run on chip models says before its first job that their drivers leave no processor to it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from netfold.testbed import chips, testbed
from netfold.testbed.chips import MAX_IDLE_SHARE, DriverLoad, measure_drivers
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.testbed import Testbed

PAIR, OTHER = 10, 20
"""Processes of model and drivers; the second is another network's."""


def write(proc: Path, pid: int, name: str, parent: int, ticks: int) -> None:
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    used = f"{ticks - 5} 5"  # in user mode and in the kernel
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {used} 0 0 20 0 9 0 100\n")


def test_only_the_drivers_of_these_switches_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chips, "_PROC", tmp_path)
    monkeypatch.setattr(chips, "_TICKS_PER_S", 100)
    now = [50.0]
    monkeypatch.setattr(chips.time, "monotonic", lambda: now[0])

    def use(ticks: int) -> None:
        write(tmp_path, 11, "tofino-model", PAIR, 1000 + ticks)
        write(tmp_path, 12, "bf_switchd", PAIR, 1000 + ticks)
        write(tmp_path, 22, "bf_switchd", OTHER, 1000 + ticks)
        write(tmp_path, 30, "a) name", PAIR, 1000 + ticks)

    def sleep(seconds: float) -> None:
        now[0] += seconds
        use(150)
        write(tmp_path, 13, "bf_switchd", PAIR, 90_000)  # restarted in between: no first reading

    use(0)
    load = measure_drivers([PAIR, None], sleep)
    assert load.busy == pytest.approx(1.5 / chips.SAMPLE_S)
    assert load.processors == os.cpu_count()


@pytest.mark.parametrize(("busy", "is_slow"), [(0.05, False), (2 * MAX_IDLE_SHARE, False), (1.4, True)])
def test_drivers_that_poll_are_named_with_the_page_that_helps(busy: float, is_slow: bool) -> None:
    warning = DriverLoad(2, busy).warning()
    assert ("1.4 of 2 processors" in warning) == is_slow
    assert ("docs/how-to/tofino.md" in warning) == is_slow


@pytest.mark.parametrize("busy", [0.0, 64.0])
def test_a_system_of_chip_models_tells_it_when_it_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: float
) -> None:
    steps: list[str] = []
    (tmp_path / "netfold.pi.bin").touch()
    system = Testbed(
        "tofino-pair", target="tofino-model", program=tmp_path, mode=NetworkMode.MININET, on_step=steps.append
    )
    network = SimpleNamespace(
        work=tmp_path,
        target=SimpleNamespace(name="tofino-model"),
        switches={"leaf1": SimpleNamespace(pid=PAIR)},
    )
    measured: list[list[int]] = []

    def measure(pairs: object) -> DriverLoad:
        measured.append(list(pairs))  # type: ignore[call-overload]
        return DriverLoad(2, busy)

    monkeypatch.setattr(testbed, "choose_target", lambda _: network.target)
    monkeypatch.setattr(testbed, "target_reason", lambda *_: "as requested")
    monkeypatch.setattr(testbed, "measure_drivers", measure)
    monkeypatch.setattr(Testbed, "_network", lambda *_: _Open(network))
    monkeypatch.setattr(Testbed, "start_controller", _start_controller)
    with system:
        pass
    assert measured == [[PAIR]]
    assert any("64.0 of 2 processors" in step for step in steps) == bool(busy)


def _start_controller(system: Testbed) -> None:
    """One that has all its switches at once."""
    system.controller = SimpleNamespace(wait_switches=lambda *_: None)  # type: ignore[assignment]


class _Open:
    def __init__(self, network: object) -> None:
        self._network = network

    def __enter__(self) -> object:
        return self._network

    def __exit__(self, *_: object) -> None: ...
