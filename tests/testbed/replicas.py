# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Processes of PyTorch that come and go, each on a host of its own of real switches. Each writes what its last step had
to a file."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.testbed.processes import HostTask, ProcessGroup
from netfold.testbed.testbed import Testbed
from netfold.testbed.torchrun import torch_python

REPOSITORY = Path(__file__).parents[2]
DEADLINE_S = 200.0
FABRIC = "name: leaves\ngenerate:\n  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 2, rate: 100}\n"


class Replicas:
    """A replica on each of three hosts, which runs `script`. The fourth host is another program's."""

    script: str

    def __init__(self, system: Testbed, folder: Path, stub: Any) -> None:
        self.system = system
        self.stub = stub
        self.folder = folder
        *self.hosts, self.last_host = sorted(system.workers)
        self._running: dict[str, ProcessGroup] = {}
        self.finish = folder / "finish"

    def start_program(self, host: str, command: list[object]) -> None:
        result = self.folder / f"{host}.json"
        result.unlink(missing_ok=True)
        self._running[host] = ProcessGroup(self.system.net, [HostTask(host, command, result)])

    def start(self, number: int) -> None:
        host = self.hosts[number]
        environment = {
            "PYTHONPATH": REPOSITORY, "NETFOLD_CONTROLLER": self.system.controller.address, "OMP_NUM_THREADS": 1,
            "GLOO_SOCKET_IFNAME": "eth0", "HOME": os.environ.get("HOME", "/root"), "TMPDIR": self.temporary,
        }  # fmt: skip
        script = Path(__file__).with_name(self.script)
        command = ["env", *(f"{key}={value}" for key, value in environment.items()), torch_python(), script]
        command += ["--number", number, *self.arguments(number)]
        self.start_program(host, [*command, "--finish", self.finish, "--out", self.folder / f"{host}.json"])

    def arguments(self, number: int) -> list[object]:
        raise NotImplementedError

    @property
    def temporary(self) -> Path:
        folder = self.folder / "temporary"
        folder.mkdir(exist_ok=True)
        return folder

    def ip(self, host: str) -> str:
        return str(self.system.net.addressing.hosts[host].ip)

    def kill(self, number: int) -> None:
        host = self.hosts[number]
        self._running.pop(host).kill(host)
        (self.folder / f"{host}.json").unlink()

    def steps(self, replicas: int, generation: int = 0) -> dict[str, Any]:
        """A step with the sum of this number of replicas, all that run, in this generation or a later one."""
        found: dict[int, dict[str, Any]] = {}

        def are_together() -> bool:
            self.system.check()
            found.clear()
            for number, host in enumerate(self.hosts):
                path = self.folder / f"{host}.json"
                if path.exists():
                    found[number] = json.loads(path.read_text())
            return len(found) == replicas and all(
                (one["replicas"], one["total"]) == (replicas, sum(2**number for number in found))
                and one["generation"] >= generation
                for one in found.values()
            )

        wait_until(are_together, f"no quorum of {replicas}: {found}; logs in {self.folder}")
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
def network(folder: Path, name: str, first_grpc_port: int) -> Iterator[tuple[Testbed, Any]]:
    """A network, and a stub of its controller."""
    fabric = folder / "leaves.yaml"
    fabric.write_text(FABRIC)
    with ExitStack() as stack:
        system = stack.enter_context(
            Testbed(str(fabric), target="softswitch", lanes=256, name=name, first_grpc_port=first_grpc_port)
        )
        channel = stack.enter_context(grpc.insecure_channel(system.controller.address))
        yield system, rpc.ControllerStub(channel)
