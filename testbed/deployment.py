# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A system on this machine: an emulated network, its controller, and jobs whose members run in the hosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from netfold.controller.planning.plan import Plan
from netfold.p4src.manifest import ManifestError, check_sources
from netfold.protocol.wire import mtu_for
from netfold.testbed import chips
from netfold.testbed.controller_process import ControllerProcess
from netfold.testbed.driver_load import measure_drivers
from netfold.testbed.errors import RunError
from netfold.testbed.managed import ManagedResource
from netfold.testbed.network.blueprint import DEFAULT_MTU
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.isolation import namespaces_mode
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.network.network import Network
from netfold.testbed.network.targets import (
    Target,
    TofinoModel,
    choose_target,
    installed_command,
    target_reason,
)
from netfold.testbed.network.userland_network import MISSING, UserlandNetwork
from netfold.testbed.processes import HostTask, ProcessGroup
from netfold.testbed.step_timeouts import step_timeouts_of
from netfold.topologies.addressing import FIRST_GRPC_PORT
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric

Results = Mapping[str, Mapping[str, Any]]


DESCRIPTIONS = {
    NetworkMode.MININET: "mininet (namespaces, with root's rights)",
    NetworkMode.ROOTLESS: "rootless (namespaces of a user namespace)",
    NetworkMode.USERLAND: f"userland (processes joined by Unix sockets, no namespaces); {MISSING}",
}


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Setup:
    """A system to start. `fabric`: name or file of a spec; `scale`: factor to the rates on the wire. Systems with
    different `name` (1 to 6 lower-case letters) and ports coexist. `controller`: further options of the controller."""

    fabric: str = "leaf-spine-2x2"
    target: str = "auto"
    lanes: int = 256
    scale: float | None = None
    name: str | None = None
    first_grpc_port: int = FIRST_GRPC_PORT
    controller: tuple[str, ...] = ()
    program: Path | None = None
    """For tofino-model: the chip's folder from `python -m netfold.p4src.tools.tofino`."""
    call_s: float | None = None
    """Timeout of one all-reduce of a worker or a ring; None: the target's default."""
    mode: NetworkMode | None = None
    """USERLAND: without namespaces; None: in those of this process."""


@dataclass
class RunningJob:
    """A job with started members. `progress`: progress file of the first worker."""

    name: str
    plan: Plan
    workers: ProcessGroup
    servers: ProcessGroup
    progress: Path
    started: float = field(default_factory=time.monotonic)


def _check_program_sources() -> None:
    """Raises RunError, before a network starts for a controller that would refuse its program."""
    try:
        check_sources()
    except ManifestError as error:
        raise RunError(str(error)) from error


class Deployment(ManagedResource):
    """A running system; a context manager."""

    def __init__(self, setup: Setup, on_step: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self.setup = setup
        self.mode = setup.mode or namespaces_mode()
        self.fabric: Fabric = load_fabric(setup.fabric)
        self.workers = [h.name for h in self.fabric.hosts if not h.parameter_server]
        self.timeouts = step_timeouts_of(setup.target)
        self.scale = setup.scale
        self._on_step = on_step
        self._chip_program: chips.ChipProgram | None = None

    def _bring_up(self) -> None:
        setup = self.setup
        hosts, switches = len(self.fabric.hosts), len(self.fabric.switches)
        target = choose_target(setup.target)
        self.timeouts = step_timeouts_of(target.name)
        self.scale = self._scale_for(self.timeouts.link_mbps)
        if target.name == TofinoModel.name:  # before its models start, which takes long
            self._chip_program = chips.chip_program(self.fabric, setup.program)
        elif "--p4info" not in setup.controller:
            _check_program_sources()
        self.target_reason = target_reason(setup.target, target)
        self._on_step(f"network: {DESCRIPTIONS[self.mode]}")
        self._on_step(
            f"starting {self.fabric.name}: {switches} switches ({self.target_reason}), {hosts} hosts"
        )
        self.net: Network = self._open.enter_context(self._network(target))
        self.directory = self.net.work
        self._on_step(f"starting the controller ({setup.lanes} lanes)")
        self.start_controller()
        self.service.wait_switches(self.timeouts.ready_s, self.check)
        if self._chip_program and (
            warning := measure_drivers(s.pid for s in self.net.switches.values()).warning()
        ):
            self._on_step(f"Note: {warning}")

    def _scale_for(self, link_mbps: float | None) -> float | None:
        """The setup's scale; without one, that at which the fastest host link has at most `link_mbps`."""
        unit = self.fabric.unit
        if self.setup.scale is not None or link_mbps is None or unit.name == "none":
            return self.setup.scale
        rates = (self.fabric.link(h.name, self.fabric.attachment(h.name)).rate for h in self.fabric.hosts)
        return min(1.0, link_mbps * 1e6 / (max(rates) * unit.bits_per_second))

    def _network(self, target: Target) -> Network:
        setup = self.setup
        if self.mode is NetworkMode.USERLAND:
            return UserlandNetwork(
                self.fabric,
                target=target,
                scale=self.scale,
                name=setup.name,
                ready_timeout_s=self.timeouts.start_s,
            )
        return EmulatedNetwork(
            self.fabric,
            target=target,
            scale=self.scale,
            name=setup.name,
            first_grpc_port=setup.first_grpc_port,
            mtu=max(DEFAULT_MTU, mtu_for(setup.lanes)),
            ready_timeout_s=self.timeouts.start_s,
        )

    @property
    def link_mbps(self) -> float:
        """Rate of the first worker's link on the wire."""
        return self.net.rate_bps(self.workers[0], self.fabric.attachment(self.workers[0])) / 1e6

    def start_controller(self) -> None:
        """Starts the controller, also after `service.close` or `service.kill`: it continues from its store."""
        setup = self.setup
        service = ControllerProcess(
            setup.fabric,
            self.directory,
            setup.lanes,
            self.scale or 1.0,
            setup.first_grpc_port,
            self.net.popen,
            (
                *("--form", self.net.target.program_form),
                *self.timeouts.controller,
                *setup.controller,
                *self._switch_options(),
            ),
        )
        self.service = self._open.enter_context(service)

    def _switch_options(self) -> list[str]:
        """Options of the controller for chip models, and for switches at Unix sockets."""
        if self.mode is NetworkMode.USERLAND:
            path = self.directory / "switches.yaml"
            addresses = {s.name: {"address": s.grpc_address} for s in self.net.switches.values()}
            path.write_text(yaml.safe_dump({"switches": addresses}))
            return ["--switches", str(path)]
        if self._chip_program is None:
            return []
        return chips.options(self.directory / "switches.yaml", self._chip_program, self.net.switches.values())

    def check(self) -> None:
        """Raises RunError if a switch or the controller has ended."""
        self.service.check()
        for switch in self.net.switches.values():
            if switch.pid is None:
                raise RunError(f"switch {switch.name} ended; log: {switch.log}")

    def submit(self, name: str, workers: Sequence[str], **spec: object) -> Plan:
        """Submits a job and waits until it runs; `spec`: further keys of the job file (docs/reference/jobs.md)."""
        text = yaml.safe_dump({"name": name, "workers": list(workers), **self.timeouts.job, **spec})
        return self.service.submit(text, self.timeouts.job_s)

    def start_job(
        self, name: str, flags: Sequence[object], workers: Sequence[str] | None = None, **spec: object
    ) -> RunningJob:
        """Submits a job and starts its parameter servers, and its workers with `flags` of `netfold host worker`."""
        chosen = list(workers or self.workers)
        plan = self.submit(name, chosen, **spec)
        folder = self.directory / name
        folder.mkdir()
        member = ["--job", name, "--controller", self.service.address, *self._call_timeout, *flags]
        tasks = [
            self._task(
                folder, h, ["host", "worker", *member, "--host", h, "--progress", folder / f"{h}.progress"]
            )
            for h in chosen
        ]
        running_servers = self.start_servers(name, plan, folder)
        running_workers = self._open.enter_context(ProcessGroup(self.net, tasks))
        return RunningJob(name, plan, running_workers, running_servers, folder / f"{chosen[0]}.progress")

    def start_servers(self, name: str, plan: Plan, folder: Path) -> ProcessGroup:
        """Starts the plan's parameter servers; the folder receives their logs."""
        member = ["--job", name, "--controller", self.service.address, *self._call_timeout]
        roots = dict.fromkeys(t.root for t in plan.trees if self.fabric.is_host(t.root))
        tasks = [self._task(folder, h, ["host", "ps", *member, "--host", h]) for h in roots]
        return self._open.enter_context(ProcessGroup(self.net, tasks))

    def finish(self, job: RunningJob, timeout_s: float, meanwhile: Callable[[], None] = _nothing) -> Results:
        """Waits for the members; the workers' results. Raises RunError."""

        def poll() -> None:
            self.check()
            meanwhile()

        results = job.workers.wait(timeout_s, poll)
        self.service.wait_ended(job.name, self.timeouts.job_s)
        job.servers.wait(self.timeouts.job_s, self.service.check)
        return results

    def start_ring(
        self, name: str, flags: Sequence[object], port: int, workers: Sequence[str] | None = None
    ) -> tuple[ProcessGroup, Path]:
        """Starts the workload as a TCP ring over all workers, or these; the processes and the first one's progress
        file."""
        chosen = list(workers or self.workers)
        folder = self.directory / f"ring-{name}"
        folder.mkdir()
        addresses = ",".join(str(self.net.addressing.hosts[h].ip) for h in chosen)
        peer = ["host", "ring", "--hosts", addresses, "--port", port, *self._call_timeout, *flags]
        tasks = [
            self._task(folder, h, [*peer, "--rank", rank, "--progress", folder / f"{h}.progress"])
            for rank, h in enumerate(chosen)
        ]
        return self._open.enter_context(ProcessGroup(self.net, tasks)), folder / f"{chosen[0]}.progress"

    @property
    def _call_timeout(self) -> list[object]:
        call_s = self.setup.call_s
        return ["--timeout", self.timeouts.call_s if call_s is None else call_s]

    def _task(self, folder: Path, host: str, command: Sequence[object]) -> HostTask:
        result = folder / f"{host}.json"
        return HostTask(host, [installed_command("netfold"), *command, "--out", result], result)
