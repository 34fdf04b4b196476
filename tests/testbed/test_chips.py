# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Models of chips, as the controller of a run is told of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from netfold.controller.jobs.file import resolve_job
from netfold.controller.switches.devicefile import read_devices
from netfold.controller.switches.devices import TofinoServer
from netfold.controller.switches.fleet import FleetOptions
from netfold.controller.switches.session import RPC_TIMEOUT_S
from netfold.testbed import chips
from netfold.testbed.errors import RunError
from netfold.testbed.step_timeouts import step_timeouts_of
from netfold.topologies.ports import Chip
from netfold.topologies.spec import load_fabric


class Switch:
    def __init__(self, name: str, port: int) -> None:
        self.name, self.grpc_address = name, f"127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("name", "cpu_port"),
    [("tofino-leaf", 320), ("tofino-pair", 320), ("tofino2-leaf", 0), ("tofino2-pair", 0)],
)
def test_the_controller_reads_of_every_switch_that_its_drivers_speak(
    tmp_path: Path, name: str, cpu_port: int
) -> None:
    fabric = load_fabric(name)
    for file in ("netfold.p4info.txtpb", "netfold.pi.bin"):
        (tmp_path / file).write_bytes(b"")
    switches = [Switch(s.name, 9559 + i) for i, s in enumerate(fabric.switches)]
    program = chips.chip_program(fabric, tmp_path)
    options = chips.options(tmp_path / "switches.yaml", program, switches)  # type: ignore[arg-type]
    assert options[:2] == ["--switches", str(tmp_path / "switches.yaml")]
    told = dict(zip(options[2::2], map(float, options[3::2]), strict=True))
    assert told["--rpc-timeout"] > RPC_TIMEOUT_S
    assert told["--counter-interval"] > FleetOptions().counter_poll_s, (
        "reading a counter holds a model's packets up"
    )
    devices = read_devices(tmp_path / "switches.yaml", fabric, 32)
    assert {n: d.address for n, d in devices.items()} == {s.name: s.grpc_address for s in switches}
    assert {(d.server, d.device_id, d.cpu_port) for d in devices.values()} == {
        (TofinoServer.DRIVERS, 0, cpu_port)
    }
    for switch in fabric.switches:
        assert {p >> 7 for p in fabric.ports[switch.name].values()} == {0, 1}, "workers in two pipes"


@pytest.mark.parametrize(
    ("name", "words"), [("tofino-leaf", "tofino --cpu-port 320"), ("tofino2-leaf", "tofino2")]
)
def test_a_program_that_is_missing_is_said_with_how_it_is_made(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(RunError, match=f"build it with `python -m netfold.p4src.tools.tofino {words}`"):
        chips.chip_program(load_fabric(name), tmp_path)


def test_a_fabric_has_one_chip(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"'s1' has no 'chip' in fabric 'single': expected tofino or tofino2"):
        chips.chip_program(load_fabric("single"), tmp_path)
    pair = load_fabric("tofino-pair")
    mixed = replace(pair, switches=(pair.switches[0], replace(pair.switches[1], chip=Chip.TOFINO2)))
    with pytest.raises(RunError, match=r"several chips.*: leaf1 \(tofino\), leaf2 \(tofino2\)"):
        chips.chip_program(mixed, tmp_path)


def test_its_jobs_keep_their_members_longer_than_others() -> None:
    timeouts = step_timeouts_of("tofino-model")
    usual, order = (
        resolve_job(yaml.safe_dump({"name": "job", "workers": 2, **keys}), load_fabric("tofino-leaf"))
        for keys in ({}, timeouts.job)
    )
    assert order.lease_ms > usual.lease_ms


def test_a_model_is_waited_for_longer_than_a_switch_in_software() -> None:
    model, usual = step_timeouts_of("tofino-model"), step_timeouts_of("softswitch")
    for name in ("start_s", "ready_s", "job_s", "call_s", "step_s"):
        assert getattr(model, name) > getattr(usual, name)
