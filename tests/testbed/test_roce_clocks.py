# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Machines with a wrong clock are found after the boot, and booted again once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from netfold.testbed.roce import lab as lab_module
from netfold.testbed.roce.image import Image
from netfold.testbed.roce.lab import Lab
from netfold.testbed.roce.machine import ClockError, find_wrong_clocks
from netfold.topologies.spec import load_fabric


class Host:
    """A host's clock, which goes on by what is waited for."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class Guest:
    """A machine whose clock runs at `rate`, and whose answers take so long."""

    def __init__(self, host_clock: Host, rate: float, delays_s: tuple[float, ...] = (0.01, 0.01)) -> None:
        self.host = "h1"
        self._clock, self._rate, self._delays = host_clock, rate, list(delays_s)

    def uptime_s(self) -> float:
        delay = self._delays.pop(0)
        self._clock.sleep(delay / 2)
        found = self._rate * self._clock.now()
        self._clock.sleep(delay / 2)
        return found


@pytest.mark.parametrize("rate", [35.0, 1.5, 0.5, 0.0])
def test_a_clock_of_another_rate_is_an_error_that_names_the_machine(rate: float):
    clock = Host()
    [error] = find_wrong_clocks([Guest(clock, rate)], clock.now, clock.sleep)
    assert str(error).startswith("h1: the machine's clock counted")


@pytest.mark.parametrize("delays_s", [(0.01, 0.01), (9.0, 0.01), (0.01, 9.0), (9.0, 9.0)])
def test_a_right_clock_is_right_on_a_busy_host(delays_s: tuple[float, float]):
    clock = Host()
    assert find_wrong_clocks([Guest(clock, 1.0, delays_s)], clock.now, clock.sleep) == []


def test_a_clock_35_times_too_fast_is_found_on_a_busy_host():
    clock = Host()
    assert find_wrong_clocks([Guest(clock, 35.0, (9.0, 9.0))], clock.now, clock.sleep)


@pytest.mark.parametrize("wrong_boots", [0, 1, 2])
def test_machines_with_a_wrong_clock_are_booted_again_once(monkeypatch: pytest.MonkeyPatch, wrong_boots: int):
    booted: list[str] = []
    closed: list[str] = []

    class Machine:
        def __init__(self, _net: object, host: str, _image: Image) -> None:
            self.host = host
            booted.append(host)
            self.is_wrong = host == "h2" and booted.count(host) <= wrong_boots

        def wait_ready(self, deadline: float) -> None:
            pass

        def close(self) -> None:
            closed.append(self.host)

    def find(machines):
        return [ClockError(m.host, 70.0, 2.0) for m in machines if m.is_wrong]

    monkeypatch.setattr(lab_module, "Machine", Machine)
    monkeypatch.setattr(lab_module, "bridge", lambda _net, _host: None)
    monkeypatch.setattr(lab_module, "find_wrong_clocks", find)
    fabric = load_fabric("leaf-spine-2x2")
    lab = Lab(boot=False)
    workers = [h.name for h in fabric.hosts if not h.parameter_server]
    monkeypatch.setattr(
        lab, "testbed", SimpleNamespace(net=None, fabric=fabric, workers=workers), raising=False
    )
    monkeypatch.setattr(lab, "_image", Image(Path("kernel"), Path("archive")), raising=False)
    if wrong_boots < 2:
        lab.boot()
    else:
        with pytest.raises(ClockError, match="h2"):
            lab.boot()
    again = ["h2"] if wrong_boots else []
    assert booted == [*lab.hosts, *again]
    assert closed == again
