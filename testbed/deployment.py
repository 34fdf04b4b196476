# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A whole system on this machine: a fabric that runs, its controller, and jobs whose members run in the hosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from netfold.controller.planning.plan import Plan
from netfold.testbed import chips
from netfold.testbed.errors import RunError
from netfold.testbed.opened import Opened
from netfold.testbed.patience import patience_with
from netfold.testbed.processes import Group, Task
from netfold.testbed.service import Service
from netfold.topologies.addressing import FIRST_GRPC_PORT
from netfold.topologies.fabric import Fabric
from netfold.topologies.network.builder import Network
from netfold.topologies.network.state import DEFAULT_NAME
from netfold.topologies.network.targets import TofinoModel, choose_target, netfold_command, reason
from netfold.topologies.spec import load_fabric

Results = Mapping[str, Mapping[str, Any]]


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Setup:
    """What to bring up. `fabric` is a spec's name or file; `scale` multiplies its rates on the wire. Systems of
    different `name` (1 to 6 small letters) and ports can be up side by side. `controller`: more of its options."""

    fabric: str = "leaf-spine-2x2"
    target: str = "auto"
    lanes: int = 256
    scale: float | None = None
    name: str = DEFAULT_NAME
    first_grpc_port: int = FIRST_GRPC_PORT
    controller: tuple[str, ...] = ()
    program: Path | None = None
    """Of the target tofino-model: what `python -m tools.tofino tofino --cpu-port 320` made."""
    call_s: float | None = None
    """That one all-reduce of a worker or a ring may take; None: what is usual for the target."""


@dataclass
class RunningJob:
    """A job whose members have been started. `progress` is the file of the first worker's progress."""

    name: str
    plan: Plan
    workers: Group
    servers: Group
    progress: Path
    started: float = field(default_factory=time.monotonic)


class Deployment(Opened):
    """A running system; a context manager that takes everything down again."""

    def __init__(self, setup: Setup, tell: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self.setup = setup
        self.fabric: Fabric = load_fabric(setup.fabric)
        self.workers = [h.name for h in self.fabric.hosts if not h.parameter_server]
        self.patience = patience_with(setup.target)
        self._tell = tell

    def _bring_up(self) -> None:
        setup = self.setup
        hosts, switches = len(self.fabric.hosts), len(self.fabric.switches)
        target = choose_target(setup.target)
        self.target_reason = reason(setup.target, target)
        self._tell(
            f"bringing up {self.fabric.name}: {switches} switches ({self.target_reason}), {hosts} hosts"
        )
        network = Network(
            self.fabric,
            target=target,
            scale=setup.scale,
            name=setup.name,
            first_grpc_port=setup.first_grpc_port,
            ready_timeout_s=self.patience.start_s,
        )
        self.net = self._open.enter_context(network)
        self.directory = self.net.work
        self._tell(f"starting the controller ({setup.lanes} lanes)")
        self.start_controller()

    @property
    def link_mbps(self) -> float:
        """What the first worker's link carries on the wire."""
        return self.net.rate_bps(self.workers[0], self.fabric.attachment(self.workers[0])) / 1e6

    def start_controller(self) -> None:
        """Start it, again after `service.close` or `service.kill`: it goes on where the last one was."""
        setup = self.setup
        service = Service(
            setup.fabric,
            self.directory,
            setup.lanes,
            setup.scale or 1.0,
            setup.first_grpc_port,
            self.net.popen,
            (*setup.controller, *self._told_of_chips()),
        )
        self.service = self._open.enter_context(service)
        if self._chips:
            self.service.wait_switches(self.patience.ready_s, self.check)

    @property
    def _chips(self) -> bool:
        return self.net.target.name == TofinoModel.name

    def _told_of_chips(self) -> list[str]:
        """The controller's options where the switches are models of chips. Raises RunError."""
        if not self._chips:
            return []
        return chips.options(self.directory / "switches.yaml", self.setup.program, self.net.switches.values())

    def check(self) -> None:
        """Raises RunError when a switch or the controller is gone."""
        self.service.check()
        for switch in self.net.switches.values():
            if switch.pid is None:
                raise RunError(f"switch {switch.name} died; its log is {switch.log}")

    def submit(self, name: str, workers: Sequence[str], **spec: object) -> Plan:
        """Admits a job and waits until it runs; `spec` are more keys of the job file (docs/jobs.md)."""
        text = yaml.safe_dump({"name": name, "workers": list(workers), **self.patience.job, **spec})
        return self.service.submit(text, self.patience.job_s)

    def start_job(
        self, name: str, flags: Sequence[object], workers: Sequence[str] | None = None, **spec: object
    ) -> RunningJob:
        """Submits a job and starts its members: workers with `flags` of `netfold worker`, and parameter servers."""
        chosen = list(workers or self.workers)
        plan = self.submit(name, chosen, **spec)
        folder = self.directory / name
        folder.mkdir()
        member = ["--job", name, "--controller", self.service.address, *self._call_timeout, *flags]
        tasks = [
            self._task(folder, h, ["worker", *member, "--host", h, "--progress", folder / f"{h}.progress"])
            for h in chosen
        ]
        running_servers = self.start_servers(name, plan, folder)
        running_workers = self._open.enter_context(Group(self.net, tasks))
        return RunningJob(name, plan, running_workers, running_servers, folder / f"{chosen[0]}.progress")

    def start_servers(self, name: str, plan: Plan, folder: Path) -> Group:
        """The plan's parameter servers; their logs go into the folder."""
        member = ["--job", name, "--controller", self.service.address, *self._call_timeout]
        roots = dict.fromkeys(t.root for t in plan.trees if self.fabric.is_host(t.root))
        tasks = [self._task(folder, h, ["ps", *member, "--host", h]) for h in roots]
        return self._open.enter_context(Group(self.net, tasks))

    def finish(self, job: RunningJob, timeout_s: float, meanwhile: Callable[[], None] = _nothing) -> Results:
        """The workers' results, when all members have ended well. Raises RunError."""

        def look() -> None:
            self.check()
            meanwhile()

        results = job.workers.wait(timeout_s, look)
        self.service.wait_over(job.name, self.patience.job_s)
        job.servers.wait(self.patience.job_s, self.service.check)
        return results

    def start_ring(
        self, name: str, flags: Sequence[object], port: int, workers: Sequence[str] | None = None
    ) -> tuple[Group, Path]:
        """The same workload as a TCP ring over all workers, or these; gives the group and the first one's progress
        file."""
        chosen = list(workers or self.workers)
        folder = self.directory / f"ring-{name}"
        folder.mkdir()
        addresses = ",".join(str(self.net.addressing.hosts[h].ip) for h in chosen)
        peer = ["ring", "--hosts", addresses, "--port", port, *self._call_timeout, *flags]
        tasks = [
            self._task(folder, h, [*peer, "--rank", rank, "--progress", folder / f"{h}.progress"])
            for rank, h in enumerate(chosen)
        ]
        return self._open.enter_context(Group(self.net, tasks)), folder / f"{chosen[0]}.progress"

    @property
    def _call_timeout(self) -> list[object]:
        call_s = self.setup.call_s
        return ["--timeout", self.patience.call_s if call_s is None else call_s]

    def _task(self, folder: Path, host: str, command: Sequence[object]) -> Task:
        result = folder / f"{host}.json"
        return Task(host, [netfold_command(), *command, "--out", result], result)
