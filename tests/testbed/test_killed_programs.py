# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of PyTorch over real switches that are killed at random moments leave nothing: no job, no slot, no file, no
process. The ranks that are left end with an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.testbed.torchrun import TORCH_PYTHON, torch_python
from tests.testbed.replicas import REPOSITORY, network

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not TORCH_PYTHON.exists(), reason="SKIPPED: needs PyTorch in .venv-torch"),
]

SEED = 48
CLEAN_S = 150.0
ROUNDS = int(os.environ.get("NETFOLD_KILLED_PROGRAMS", "100"))


class Leftovers:
    """The jobs, slots, files and processes that programs have left at the controller and on these hosts."""

    def __init__(self, stub: Any, networks: set[int], temporary: Path) -> None:
        self._stub = stub
        self._networks = networks
        self._temporary = temporary
        self._before = self._own()

    def found(self) -> set[str]:
        status = self._stub.GetStatus(pb.StatusRequest(), timeout=30)
        return {
            *(f"job {job.name}" for job in self._stub.ListJobs(pb.ListJobsRequest(), timeout=30).jobs),
            *(f"slots of {one.name}" for one in status.switches if one.slots_in_use),
            *(f"file {path}" for path in self._temporary.rglob("*") if path.is_file()),
            *(self._own() - self._before),
        }

    def wait(self, of: str) -> dict[str, float]:
        """Wait until there is nothing; return the seconds for which each one was there."""
        started, seconds = time.monotonic(), dict[str, float]()
        while found := self.found():
            seconds.update(dict.fromkeys(found, time.monotonic() - started))
            assert seconds[next(iter(found))] < CLEAN_S, f"{of} has left {found}"
            time.sleep(0.1)
        return seconds

    def _own(self) -> set[str]:
        """The processes on the hosts. Ranks of a host share memory that has no file."""
        found = set()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (folder / "ns" / "net").stat().st_ino in self._networks:
                    found.add(f"process {folder.name} {(folder / 'cmdline').read_bytes()!r}")
        return found


def test_killed_programs_leave_nothing(tmp_path: Path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with network(tmp_path, "kills", first_grpc_port=20240) as (system, stub):
        hosts = [system.workers[0], system.workers[2]]
        pids = [system.net.hosts[host].pid for host in hosts]
        networks = {Path(f"/proc/{pid}/ns/net").stat().st_ino for pid in pids}
        leftovers = Leftovers(stub, networks, temporary)
        addresses = [system.net.addressing.hosts[host].ip for host in hosts]
        command = [torch_python(), Path(__file__).with_name("killed_programs.py"), "--temporary", temporary]
        command += ["--hosts", ",".join(f"{pid}:{ip}" for pid, ip in zip(pids, addresses, strict=True))]
        command += ["--controller", system.controller.address, "--seed", SEED, "--rounds", ROUNDS]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
        with (
            (tmp_path / "ranks.log").open("w") as log,
            subprocess.Popen(
                list(map(str, command)), env=environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            ) as programs,
        ):  # fmt: skip
            assert programs.stdin is not None
            assert programs.stdout is not None
            for number in range(ROUNDS):
                program = json.loads(programs.stdout.readline())
                killed = f"program {number}: {program}"
                assert None not in program["codes"], f"{killed}: a rank did not end"
                seconds = leftovers.wait(killed)
                sys.stdout.write(f"{killed} left {seconds}\n")
                programs.stdin.write("\n")
                programs.stdin.flush()
