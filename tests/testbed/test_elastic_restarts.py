# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Restarts of an elastic torchrun over real switches: a rank is killed, a node leaves, and one joins. The world of all
attempts is one job. The groups of each attempt have their own jobs, and those of the attempt before have ended."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.testbed.processes import HostTask, ProcessGroup
from netfold.testbed.testbed import Testbed
from netfold.testbed.torchrun import TORCH_PYTHON, torch_python

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not TORCH_PYTHON.exists(), reason="needs PyTorch in .venv-torch"),
]

REPOSITORY = Path(__file__).parents[2]
LINK = 100
WORLD_RATE, GROUP_RATE = 20, 30
"""Rates as percentages of a host's link, with two groups: beside the jobs of an earlier attempt there is capacity for
the next one's world, which starts at once then, but not for its groups."""
ATTEMPT_S = 240.0
CONF = "last_call_timeout=20,keep_alive_interval=3"
"""An attempt of fewer nodes than four waits this long for more, and an agent is given up after three intervals."""


class Nodes:
    """A torchrun on each of some hosts; its rank writes what its attempt has."""

    def __init__(
        self, system: Testbed, folder: Path, options: Sequence[object], environment: dict[str, object]
    ) -> None:
        self._system = system
        self._folder = folder
        self._options = options
        self._environment = environment
        self.finish = folder / "finish"
        self._running: dict[str, ProcessGroup] = {}
        self._old: list[ProcessGroup] = []

    def __enter__(self) -> Nodes:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for group in (*self._running.values(), *self._old):
                stack.enter_context(group)

    def start(self, host: str) -> None:
        environment = {
            "PYTHONPATH": REPOSITORY, "NETFOLD_CONTROLLER": self._system.controller.address, "OMP_NUM_THREADS": 1,
            "GLOO_SOCKET_IFNAME": "eth0", "HOME": os.environ.get("HOME", "/root"), "NETFOLD_RATE": WORLD_RATE,
            "NETFOLD_GROUP_RATE": GROUP_RATE, **self._environment,
        }  # fmt: skip
        torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", 1, "--local-addr", self._ip(host)]
        command = [
            "env",
            *(f"{key}={value}" for key, value in environment.items()),
            torch_python(),
            *torchrun,
        ]
        command += [*self._options, "--rdzv-conf", f"{CONF},is_host={int(host == self._system.workers[0])}"]
        command += [Path(__file__).with_name("elastic_rank.py"), "--finish", self.finish]
        result = self._out(host)
        task = HostTask(host, [*command, "--out", result], result)
        self._running[host] = ProcessGroup(self._system.net, [task])

    def _ip(self, host: str) -> str:
        return str(self._system.net.addressing.hosts[host].ip)

    def _out(self, host: str) -> Path:
        return self._folder / f"{host}.json"

    def attempt(self, size: int, after: int = -1) -> dict[str, dict[str, Any]]:
        """Return the findings of each host in an attempt of `size` ranks, of a generation later than `after`."""

        def read() -> dict[str, dict[str, Any]]:
            self._system.check()
            paths = {host: self._out(host) for host in self._running}
            return {host: json.loads(path.read_text()) for host, path in paths.items() if path.exists()}

        def is_complete() -> bool:
            found = read()
            worlds = {(one["jobs"][0], one["generation"]) for one in found.values()}
            return (
                len(found) == len(self._running)
                and {one["size"] for one in found.values()} == {size}
                and len(worlds) == 1
                and all(generation > after for _, generation in worlds)
            )

        wait_until(is_complete, f"no attempt of {size} ranks; logs in {self._folder}")
        return read()

    def kill(self, host: str, pid: int) -> None:
        """A node: its agent and its rank."""
        group = self._running.pop(host)
        group.kill(host)
        os.kill(pid, signal.SIGKILL)
        self._old.append(group)
        self._out(host).unlink()

    def join(self) -> None:
        self.finish.touch()
        for host, group in self._running.items():
            assert group.outcomes(ATTEMPT_S)[host][0] == 0


def wait_until(is_true: Callable[[], bool], otherwise: str, timeout_s: float = ATTEMPT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_true():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.2)


class Jobs:
    """The controller's."""

    def __init__(self, stub: Any) -> None:
        self._stub = stub

    def ended(self) -> dict[str, str]:
        """Names and reasons."""
        jobs = self._stub.ListJobs(pb.ListJobsRequest(all=True), timeout=30).jobs
        return {job.name: job.reason for job in jobs if job.state in (pb.FAILED, pb.DONE, pb.CANCELED)}

    def live(self) -> list[str]:
        return sorted(job.name for job in self._stub.ListJobs(pb.ListJobsRequest(), timeout=30).jobs)

    def plan(self, name: str) -> str:
        return str(self._stub.GetJob(pb.JobName(name=name), timeout=30).plan_json)

    def slots_in_use(self) -> int:
        return sum(one.slots_in_use for one in self._stub.GetStatus(pb.StatusRequest(), timeout=30).switches)


def world_of(attempt: dict[str, dict[str, Any]]) -> tuple[str, int]:
    """Its job, and the generation there."""
    first = next(iter(attempt.values()))
    return first["jobs"][0], first["generation"]


def jobs_of(attempt: dict[str, dict[str, Any]]) -> list[str]:
    """Returns the jobs of all groups. Each has a job, and its sums were right."""
    assert all(one["wrong"] == [] and "" not in one["jobs"] for one in attempt.values()), attempt
    return sorted({job for one in attempt.values() for job in one["jobs"]})


@pytest.mark.parametrize("shares_store", [True, False])
def test_restarts_of_an_elastic_program_leave_no_job_behind(tmp_path: Path, shares_store: bool):
    """PyTorch's agents keep one store for all attempts by default. A node that joins later does not find it, so only
    programs with a store for each attempt are joined by one."""
    fabric = tmp_path / "leaves.yaml"
    fabric.write_text(
        f"name: leaves\ngenerate:\n  leaf_spine: {{leaves: 2, spines: 2, hosts_per_leaf: 2, rate: {LINK}}}\n"
    )
    with ExitStack() as stack:
        system = stack.enter_context(
            Testbed(str(fabric), target="softswitch", lanes=256, name="elast", first_grpc_port=20180)
        )
        jobs = Jobs(rpc.ControllerStub(stack.enter_context(grpc.insecure_channel(system.controller.address))))
        first, *others = system.workers
        endpoint = f"{system.net.addressing.hosts[first].ip}:29740"
        options: list[object] = ["--nnodes", "2:4", "--max-restarts", 5, "--rdzv-backend", "c10d"]
        options += ["--rdzv-endpoint", endpoint, "--rdzv-id", "elastic"]
        environment = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": int(not shares_store)}
        nodes = stack.enter_context(Nodes(system, tmp_path, options, environment))
        for host in system.workers:
            nodes.start(host)
        found = nodes.attempt(4)
        before = jobs_of(found)
        assert jobs.live() == before
        assert len(before) == 5
        world, generation = world_of(found)

        leaver, killed = sorted(others, key=lambda host: -found[host]["rank"])[:2]
        plan = jobs.plan(world)
        os.kill(found[killed]["pid"], signal.SIGKILL)
        found = nodes.attempt(4, generation)
        restarted = jobs_of(found)
        assert jobs.live() == restarted
        assert jobs.ended().keys() == set(before) - {world}
        assert all("lease" not in reason for reason in jobs.ended().values())
        assert set(before) & set(restarted) == {world}
        assert jobs.plan(world) == plan
        generation = world_of(found)[1]

        nodes.kill(leaver, found[leaver]["pid"])
        found = nodes.attempt(3, generation)
        smaller = jobs_of(found)
        assert jobs.live() == smaller
        assert len(smaller) == 4
        assert world_of(found)[0] == world

        if not shares_store:
            nodes.start(leaver)
            found = nodes.attempt(4, world_of(found)[1])
            assert jobs.live() == jobs_of(found)
            assert world_of(found)[0] == world
        nodes.join()
        wait_until(lambda: jobs.live() == [], "jobs are left")
        assert jobs.slots_in_use() == 0
        assert system.submit("all", workers=system.workers, rate=LINK, parameter_servers=0)
