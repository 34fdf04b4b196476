# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Quorums of torchft's manager over real switches: a replica dies in the middle of a call, and comes back. All quorums
are one job, which no replica that has died contributes to."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.testbed.processes import HostTask, ProcessGroup
from netfold.testbed.testbed import Testbed
from netfold.testbed.torchrun import TORCH_PYTHON, torch_python

LIGHTHOUSE = TORCH_PYTHON.with_name("torchft_lighthouse")

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not LIGHTHOUSE.exists(), reason="SKIPPED: needs torchft in .venv-torch"),
]

REPOSITORY = Path(__file__).parents[2]
DEADLINE_S = 200.0
FABRIC = "name: leaves\ngenerate:\n  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 2, rate: 100}\n"
PORT = 29510


class Replicas:
    """A replica on each of three hosts, and the lighthouse on the fourth."""

    def __init__(self, system: Testbed, folder: Path, stub: Any, least: int) -> None:
        self.system = system
        self.stub = stub
        self._folder = folder
        *self.hosts, self._lighthouse = sorted(system.workers)
        self._running: dict[str, ProcessGroup] = {}
        self.finish = folder / "finish"
        command = [LIGHTHOUSE.absolute(), "--min_replicas", least, "--bind", f"0.0.0.0:{PORT}"]
        command += ["--join_timeout_ms", 3000, "--heartbeat_timeout_ms", 2000]
        self._start(self._lighthouse, command)

    def _start(self, host: str, command: list[object]) -> None:
        result = self._folder / f"{host}.json"
        result.unlink(missing_ok=True)
        self._running[host] = ProcessGroup(self.system.net, [HostTask(host, command, result)])

    def start(self, number: int) -> None:
        host = self.hosts[number]
        environment = {
            "PYTHONPATH": REPOSITORY, "NETFOLD_CONTROLLER": self.system.controller.address, "OMP_NUM_THREADS": 1,
            "GLOO_SOCKET_IFNAME": "eth0", "HOME": os.environ.get("HOME", "/root"), "TMPDIR": self.temporary,
        }  # fmt: skip
        script = Path(__file__).with_name("torchft_replica.py")
        command = ["env", *(f"{key}={value}" for key, value in environment.items()), torch_python(), script]
        command += ["--number", number, "--address", self._ip(host)]
        command += ["--lighthouse", f"http://{self._ip(self._lighthouse)}:{PORT}"]
        self._start(host, [*command, "--finish", self.finish, "--out", self._folder / f"{host}.json"])

    @property
    def temporary(self) -> Path:
        folder = self._folder / "temporary"
        folder.mkdir(exist_ok=True)
        return folder

    def _ip(self, host: str) -> str:
        return str(self.system.net.addressing.hosts[host].ip)

    def kill(self, number: int) -> None:
        host = self.hosts[number]
        self._running.pop(host).kill(host)
        (self._folder / f"{host}.json").unlink()

    def steps(self, replicas: int, generation: int = 0) -> dict[str, Any]:
        """A step with the sum of this number of replicas, all that run, in this generation or a later one."""
        found: dict[int, dict[str, Any]] = {}

        def are_together() -> bool:
            self.system.check()
            found.clear()
            for number, host in enumerate(self.hosts):
                path = self._folder / f"{host}.json"
                if path.exists():
                    found[number] = json.loads(path.read_text())
            return len(found) == replicas and all(
                (one["replicas"], one["total"]) == (replicas, sum(2**number for number in found))
                and one["generation"] >= generation
                for one in found.values()
            )

        wait_until(are_together, f"no quorum of {replicas}: {found}; logs in {self._folder}")
        assert all(one["wrong"] == [] for one in found.values()), found
        assert len({(one["job"], one["generation"]) for one in found.values()}) == 1, found
        return found[min(found)]

    def job(self, name: str) -> pb.Job:
        return self.stub.GetJob(pb.JobName(name=name), timeout=30)

    def live(self) -> list[str]:
        return [job.name for job in self.stub.ListJobs(pb.ListJobsRequest(), timeout=30).jobs]

    def ever(self) -> list[str]:
        return [job.name for job in self.stub.ListJobs(pb.ListJobsRequest(all=True), timeout=30).jobs]

    def slots_in_use(self) -> int:
        return sum(one.slots_in_use for one in self.stub.GetStatus(pb.StatusRequest(), timeout=30).switches)

    def assert_nothing_is_left(self) -> None:
        wait_until(lambda: self.live() == [], "a job is left")
        assert self.slots_in_use() == 0
        wait_until(lambda: not list(self.temporary.rglob("*.json")), "files are left")

    def join(self) -> None:
        self.finish.touch()
        for host in self.hosts:
            if host in self._running:
                assert self._running[host].outcomes(DEADLINE_S)[host][0] == 0

    def close(self) -> None:
        with ExitStack() as stack:
            for group in self._running.values():
                stack.enter_context(group)


def wait_until(is_true: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_true():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.1)


@contextmanager
def running(folder: Path, least: int) -> Iterator[Replicas]:
    fabric = folder / "leaves.yaml"
    fabric.write_text(FABRIC)
    with ExitStack() as stack:
        system = stack.enter_context(
            Testbed(str(fabric), target="softswitch", lanes=256, name="tft", first_grpc_port=9930)
        )
        stub = rpc.ControllerStub(stack.enter_context(grpc.insecure_channel(system.controller.address)))
        replicas = Replicas(system, folder, stub, least)
        stack.callback(replicas.close)
        for number in range(3):
            replicas.start(number)
        yield replicas


def test_a_replica_that_comes_back_joins_the_same_job_on_its_plan_and_slots(tmp_path: Path):
    with running(tmp_path, least=3) as replicas:
        first = replicas.steps(3)
        before = replicas.job(first["job"])
        slots = replicas.slots_in_use()
        for number in (2, 0):  # also the one that decides
            replicas.kill(number)
            generation = replicas.job(first["job"]).generation
            wait_until(lambda: replicas.job(first["job"]).interrupted, "its death does not end the calls")
            assert replicas.slots_in_use() == slots
            replicas.start(number)
            again = replicas.steps(3, generation + 1)
            after = replicas.job(first["job"])
            assert again["job"] == first["job"]
            assert after.epoch > before.epoch
            assert after.plan_json == before.plan_json
            assert replicas.slots_in_use() == slots
        replicas.join()
        replicas.assert_nothing_is_left()
        assert replicas.ever() == [first["job"]]


def test_replicas_that_are_left_go_on_in_the_same_job(tmp_path: Path):
    with running(tmp_path, least=2) as replicas:
        first = replicas.steps(3)
        epoch = replicas.job(first["job"]).epoch
        replicas.kill(1)
        fewer = replicas.steps(2)
        assert fewer["job"] == first["job"]
        assert fewer["generation"] > first["generation"]
        assert replicas.job(first["job"]).epoch > epoch
        epoch = replicas.job(first["job"]).epoch
        replicas.start(1)
        again = replicas.steps(3)
        assert again["job"] == first["job"]
        assert again["generation"] > fewer["generation"]
        assert replicas.job(first["job"]).epoch > epoch
        assert replicas.ever() == [first["job"]]
        for number in range(3):
            replicas.kill(number)
        replicas.assert_nothing_is_left()
