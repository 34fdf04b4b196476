# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The way in which the suite runs on a switch that is already there (remote.py), tried on a softswitch whose ports have
other numbers than the suite's: sets spelled out or in one shot, frames padded as Ethernet pads them."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import pytest
import yaml
from pydantic import ValidationError
from softswitch.testing.simple_switch import free_port

from netfold.p4src.tools.p4build import REPOSITORY, Profile
from netfold.testbed.network.targets import TofinoModel
from tests.dataplane import bmv2, stack
from tests.dataplane.chip import TREES
from tests.dataplane.device import compiled
from tests.dataplane.frames import LANES
from tests.dataplane.remote import PORTS, RemoteSwitch

NUMBERS = {port: 128 * (port % 2) + 3 * port for port in PORTS}
_WRITES = "test_writes.py::test_no_result_is_wrong_between_two_writes"
SUITE = {
    True: (
        "test_aggregate.py",
        "test_management.py",
        "test_loopback.py",
        "test_isolation.py",
        *(
            f"{_WRITES}[remote-{case}]" for case in ("a new epoch-0", "the end of a job-0")
        ),  # of the same slots
    ),
    False: ("test_forwarding.py",),  # routes alone are written in another way
}
"""By whether ECMP sets are written in one shot; with these the program is pushed once, too."""
_names = itertools.count()


@contextmanager
def softswitch(folder: Path) -> Iterator[dict[str, object]]:
    """A running one, and what the file says of it."""
    with ExitStack() as stack:
        name = f"nr{os.getpid() % 100_000}x{next(_names)}"
        for port in PORTS:
            stack.enter_context(bmv2.link(f"{name}p{port}"))
        address = f"127.0.0.1:{free_port()}"
        start = "from softswitch.cli import main; main()"
        command = [
            sys.executable,
            "-c",
            start,
            "--no-p4",
            "--device-id",
            "7",
            "--cpu-port",
            "510",
        ]
        command += ["--grpc-server-addr", address]
        command += [a for port in PORTS for a in ("-i", f"{NUMBERS[port]}@{name}p{port}")]
        log = stack.enter_context((folder / "switch.log").open("wb"))
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=REPOSITORY)
        stack.callback(bmv2._end, process)
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=30)
        program, p4info = compiled(Profile(LANES))
        ports = {port: {"port": NUMBERS[port], "interface": f"{name}p{port}t"} for port in PORTS}
        paths = {"p4info": str(p4info), "config": str(program)}
        yield {"address": address, "device_id": 7, "least_bytes": 60, "quiet_ms": 1, "ports": ports, **paths}


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: veth links need root")
@pytest.mark.parametrize("one_shot", [pytest.param(True, marks=pytest.mark.slow), False])
def test_the_suite_runs_on_a_switch_that_is_already_there(tmp_path: Path, one_shot: bool):
    with softswitch(tmp_path) as described:
        path = tmp_path / "switch.yaml"
        path.write_text(
            yaml.safe_dump({**described, "one_shot": one_shot, "shared_push": one_shot, "together": 5})
        )
        files = [f"tests/dataplane/{name}" for name in SUITE[one_shot]]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-k", "remote", "-m", "not long", *files],
            env={**os.environ, "NETFOLD_SWITCH": str(path)},
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (compared,) = re.findall(r"data plane on remote: ([\d,]+) packets sent", done.stdout)
    assert int(compared.replace(",", "")) >= 40


@pytest.mark.parametrize("name", stack.STACKS)
def test_on_a_chip_s_model_all_ports_are_in_the_pipe_by_which_slots_are_read(name: str):
    spec = stack.profile(stack.STACKS[name], "127.0.0.1:1", {n: f"eth{n}" for n in PORTS})
    assert {p.port >> 7 for p in spec.ports.values()} == {spec.cpu_port >> 7}
    assert spec.trees == TREES[stack.STACKS[name].chip]
    assert TofinoModel.name in stack.STACKS


def test_the_file_needs_every_port_and_the_suite_s_lanes():
    given = {"address": "a:1", "p4info": "p", "config": "c"}
    ports = {n: {"port": n, "interface": f"eth{n}"} for n in PORTS}
    RemoteSwitch.model_validate({**given, "ports": ports})
    with pytest.raises(ValidationError, match="the suite uses 1 to 7"):
        RemoteSwitch.model_validate({**given, "ports": {1: ports[1]}})
    with pytest.raises(ValidationError, match=f"build it with --lanes {LANES}"):
        RemoteSwitch.model_validate({**given, "ports": ports, "lanes": 64})
