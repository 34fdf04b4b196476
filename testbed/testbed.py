# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed on this machine: an emulated network, its controller, and jobs whose members run in the hosts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from netfold.controller.switches.programs import lanes_for
from netfold.p4src.manifest import ManifestError, check_sources
from netfold.protocol.environment import Variable
from netfold.protocol.wire import mtu_for
from netfold.testbed import chips
from netfold.testbed.capture import Capture
from netfold.testbed.chips import measure_drivers
from netfold.testbed.controller_process import ControllerProcess
from netfold.testbed.errors import ProgramSourcesError, RunError
from netfold.testbed.managed import ManagedResource
from netfold.testbed.mpirun import hosts_command, preload_of
from netfold.testbed.network.blueprint import DEFAULT_MTU
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.errors import NoNamespacesError
from netfold.testbed.network.faults import Faults
from netfold.testbed.network.handles import HostHandle
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
from netfold.testbed.submitted_job import JobStatus, SubmittedJob, status_of
from netfold.testbed.torchrun import TorchProgram, torchrun_tasks
from netfold.topologies.addressing import FIRST_GRPC_PORT
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric, spec_text
from netfold.traffic.mpi.launch import MpiProgram

if TYPE_CHECKING:
    import networkx as nx

DESCRIPTIONS = {
    NetworkMode.MININET: "mininet (namespaces, with root's rights)",
    NetworkMode.ROOTLESS: "rootless (namespaces of a user namespace)",
    NetworkMode.USERLAND: f"userland (processes joined by Unix sockets, no namespaces); {MISSING}",
}


def _check_program_sources() -> None:
    """Raises ProgramSourcesError, before a network starts for a controller that would refuse its program."""
    try:
        check_sources()
    except ManifestError as error:
        raise ProgramSourcesError(str(error)) from error


class Testbed(ManagedResource):
    """A fabric as an emulated network on this machine, with its controller; a context manager.

    - `fabric`: the name of a spec, a spec's file, a Fabric, or a networkx graph (`Fabric.from_graph`)
    - `target`: the switches: "softswitch", "bmv2", "tofino-model", or "auto": softswitch where it can run
    - `lanes`: elements of a packet: 32, 64, 256 or 512; None: the maximum, up to the target's, of a program for
      the fabric's children
    - `scale`: factor from the fabric's rates to rates on the wire; None: 1, or what the target can carry
    - `name`: 1 to 6 lower-case letters, None: $NETFOLD_NAME or nf; testbeds of different names and ports
      coexist
    - `first_grpc_port`: P4Runtime port of the first switch; the others follow
    - `controller_options`: further options of `netfold controller run`
    - `program`: for tofino-model: the chip's folder from `python -m netfold.p4src.tools.tofino`
    - `call_timeout_s`: of one all-reduce of the workers that `submit` starts; None: the target's default
    - `mode`: USERLAND: without namespaces; None: in those of this process
    - `on_step`: receives one line before each step that takes long
    """

    __test__ = False  # pytest takes classes of this name for tests

    def __init__(
        self,
        fabric: str | Path | Fabric | nx.Graph[Any] = "leaf-spine-2x2",
        *,
        target: str = "auto",
        lanes: int | None = None,
        scale: float | None = None,
        name: str | None = None,
        first_grpc_port: int = FIRST_GRPC_PORT,
        controller_options: Sequence[str] = (),
        program: Path | None = None,
        call_timeout_s: float | None = None,
        mode: NetworkMode | None = None,
        on_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__()
        self._spec = fabric if isinstance(fabric, str | Path) else None
        self.fabric = _fabric_of(fabric)
        self.wanted_target = target
        self.timeouts = step_timeouts_of(target)
        self.scale = scale
        self.mode = mode or namespaces_mode()
        self.workers = [h.name for h in self.fabric.hosts if not h.parameter_server]
        self.lanes = lanes or self._most_lanes()
        self._wanted_lanes = lanes
        self._name = name
        self._first_grpc_port = first_grpc_port
        self._controller_options = tuple(controller_options)
        self._program = program
        self._call_timeout_s = call_timeout_s
        self._on_step = on_step
        self._chip_program: chips.ChipProgram | None = None
        self._killed: set[str] = set()

    # ---- life ----

    def _bring_up(self) -> None:
        hosts, switches = len(self.fabric.hosts), len(self.fabric.switches)
        target = choose_target(self.wanted_target)
        self.timeouts = step_timeouts_of(target.name)
        self.scale = self._scale_for(self.timeouts.link_mbps)
        self.lanes = self._wanted_lanes or self._most_lanes()
        if target.name == TofinoModel.name:  # before its models start, which takes long
            self._chip_program = chips.chip_program(self.fabric, self._program)
        elif "--p4info" not in self._controller_options:
            _check_program_sources()
        self.target_reason = target_reason(self.wanted_target, target)
        self._on_step(f"network: {DESCRIPTIONS[self.mode]}")
        self._on_step(
            f"starting {self.fabric.name}: {switches} switches ({self.target_reason}), {hosts} hosts"
        )
        self.net: Network = self._open.enter_context(self._network(target))
        self.directory = self.net.work
        self._on_step(f"starting the controller ({self.lanes} lanes)")
        self.start_controller()
        self.controller.wait_switches(self.timeouts.ready_s, self.check)
        if self._chip_program and (
            warning := measure_drivers(s.pid for s in self.net.switches.values()).warning()
        ):
            self._on_step(f"Note: {warning}")

    def _most_lanes(self) -> int:
        return lanes_for(self.fabric.switches, self.timeouts.lanes)

    def _scale_for(self, link_mbps: float | None) -> float | None:
        """The chosen scale; without one, that at which the fastest host link has at most `link_mbps`."""
        unit = self.fabric.unit
        if self.scale is not None or link_mbps is None or unit.name == "none":
            return self.scale
        rates = (self.fabric.link(h.name, self.fabric.attachment(h.name)).rate for h in self.fabric.hosts)
        return min(1.0, link_mbps * 1e6 / (max(rates) * unit.bits_per_second))

    def _network(self, target: Target) -> Network:
        if self.mode is NetworkMode.USERLAND:
            return UserlandNetwork(
                self.fabric,
                target=target,
                scale=self.scale,
                name=self._name,
                ready_timeout_s=self.timeouts.start_s,
            )
        return EmulatedNetwork(
            self.fabric,
            target=target,
            scale=self.scale,
            name=self._name,
            first_grpc_port=self._first_grpc_port,
            mtu=max(DEFAULT_MTU, mtu_for(self.lanes)),
            ready_timeout_s=self.timeouts.start_s,
        )

    def start_controller(self) -> None:
        """Starts the controller again after `controller.kill`: it continues from its store."""
        service = ControllerProcess(
            self._spec_file(),
            self.directory,
            self.lanes,
            self.scale or 1.0,
            self._first_grpc_port,
            self.net.popen,
            (
                *("--form", self.net.target.program_form),
                *self.timeouts.controller,
                *self._controller_options,
                *self._switch_options(),
            ),
        )
        self.controller = self._open.enter_context(service)
        self.net.environment[Variable.CONTROLLER] = self.controller.address

    def _spec_file(self) -> str:
        """The fabric as the controller reads it."""
        if self._spec is not None:
            return str(self._spec)
        file = self.directory / "fabric.yaml"
        file.write_text(spec_text(self.fabric))
        return str(file)

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
        """Raises RunError if the controller, or a switch that `kill` has not ended, has ended."""
        self.controller.check()
        for switch in self.net.switches.values():
            if switch.pid is None and switch.name not in self._killed:
                raise RunError(f"switch {switch.name} ended; log: {switch.log}")

    # ---- hosts ----

    @property
    def link_mbps(self) -> float:
        """Rate of the first worker's link on the wire."""
        return self.net.rate_bps(self.workers[0], self.fabric.attachment(self.workers[0])) / 1e6

    def host(self, name: str) -> HostHandle:
        """A host, to run commands in. They find the controller by $NETFOLD_CONTROLLER. Raises NetworkError for an
        unknown name."""
        return self.net.host(name)

    def address(self, host: str) -> str:
        """The IPv4 address of a host. Raises NetworkError for an unknown name."""
        self.net.host(host)
        return str(self.net.addressing.hosts[host].ip)

    @property
    def mininet(self) -> Any:
        """Mininet's own object of the network, mininet.net.Mininet. Raises NetworkError without namespaces."""
        if not isinstance(self.net, EmulatedNetwork):
            raise NoNamespacesError(self.net.name)
        return self.net.mininet

    # ---- jobs ----

    def submit(
        self,
        name: str,
        workload: Sequence[object] | None = None,
        workers: Sequence[str] | None = None,
        **spec: object,
    ) -> SubmittedJob:
        """Submits a job, waits until it runs, and starts its parameter servers.

        workload  options of `netfold host worker`, which then runs on each worker; None: programs of yours join the job
        workers   hosts; None: all that are no parameter servers
        spec      further keys of the job file (docs/reference/jobs.md), such as scheme, rate or quorum

        Raises RunError with the controller's reason."""
        chosen = list(workers or self.workers)
        text = yaml.safe_dump({"name": name, "workers": chosen, **self.timeouts.job, **spec})
        plan = self.controller.submit(text, self.timeouts.job_s)
        folder = self.directory / name
        folder.mkdir()
        member = ["--job", name, "--controller", self.controller.address, *self._call_timeout]
        roots = dict.fromkeys(t.root for t in plan.trees if self.fabric.is_host(t.root))
        servers = [self._task(folder, h, ["host", "ps", *member, "--host", h]) for h in roots]
        tasks = [
            self._task(folder, h, [
                "host", "worker", *member, *workload, "--host", h, "--progress", folder / f"{h}.progress"
            ])
            for h in chosen if workload is not None
        ]  # fmt: skip
        return SubmittedJob(
            name,
            plan,
            self.controller,
            self._open.enter_context(ProcessGroup(self.net, tasks)),
            self._open.enter_context(ProcessGroup(self.net, servers)),
            folder / f"{chosen[0]}.progress",
            self.timeouts,
            self.check,
        )

    def jobs(self) -> dict[str, JobStatus]:
        """All jobs, those that programs in hosts have submitted and those that have ended, too. Raises RunError."""
        return {job.name: status_of(job) for job in self.controller.jobs()}

    def start_ring(
        self, name: str, workload: Sequence[object], port: int, workers: Sequence[str] | None = None
    ) -> tuple[ProcessGroup, Path]:
        """Starts the workload as a TCP ring over all workers, or these; the processes and the first one's progress
        file."""
        chosen = list(workers or self.workers)
        folder = self.directory / f"ring-{name}"
        folder.mkdir()
        addresses = ",".join(self.address(h) for h in chosen)
        peer = ["host", "ring", "--hosts", addresses, "--port", port, *self._call_timeout, *workload]
        tasks = [
            self._task(folder, h, [*peer, "--rank", rank, "--progress", folder / f"{h}.progress"])
            for rank, h in enumerate(chosen)
        ]
        return self._open.enter_context(ProcessGroup(self.net, tasks)), folder / f"{chosen[0]}.progress"

    @property
    def _call_timeout(self) -> list[object]:
        call_s = self._call_timeout_s
        return ["--timeout", self.timeouts.call_s if call_s is None else call_s]

    def _task(self, folder: Path, host: str, command: Sequence[object]) -> HostTask:
        result = folder / f"{host}.json"
        return HostTask(host, [installed_command("netfold"), *command, "--out", result], result)

    def torchrun(
        self,
        script: str | Path,
        arguments: Sequence[object] = (),
        *,
        hosts: Sequence[str] | None = None,
        ranks: int = 1,
        environment: Mapping[str, str] | None = None,
        name: str = "torchrun",
        port: int = 29500,
        result_option: str = "",
        python: Path | None = None,
    ) -> ProcessGroup:
        """Starts a PyTorch script by `torchrun` on all workers, or these hosts; a group, which is a context manager.

        ranks          processes on each host
        environment    added to torchrun's
        name           of the folder of its logs in `directory`, which must be new
        result_option  the script's option for the file of its result (JSON), which the group's `wait` returns
        python         the interpreter with PyTorch; default: this one, else the checkout's

        Raises RunError without PyTorch."""
        chosen = list(hosts or self.workers)
        addresses = {host: self.address(host) for host in chosen}
        program = TorchProgram(Path(script), arguments, ranks, dict(environment or {}), result_option, python)
        folder = self.directory / name
        tasks = torchrun_tasks(program, addresses, folder, port)
        folder.mkdir()
        return self._open.enter_context(ProcessGroup(self.net, tasks))

    def mpirun(
        self,
        command: Sequence[object],
        ranks: int,
        *,
        timeout_s: float,
        hosts: Sequence[str] | None = None,
        mpirun: str = "mpirun",
        uses_netfold: bool = True,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs an MPI program on all workers, or these hosts, in turn; its exit code and output.

        mpirun        Open MPI's launcher, or MPICH's, with these `options`
        uses_netfold  its collectives go through the switches, else over TCP
        environment   of the ranks

        Raises MpiBuildError, subprocess.TimeoutExpired."""
        chosen = list(hosts or self.workers)
        program = MpiProgram(command, ranks, chosen, options=options, environment=dict(environment or {}))
        preloaded = preload_of(mpirun, self.controller.address) if uses_netfold else {}
        words = hosts_command(
            replace(program, environment={**preloaded, **program.environment}),
            self.net.state().hosts, self.directory, mpirun,
        )  # fmt: skip
        return self.host(chosen[0]).run(words, timeout_s, cwd=cwd)

    # ---- faults and captures ----

    def fail(self, link: str) -> None:
        """Cuts a link, named as "leaf1-spine1": both ends lose their carrier."""
        self.net.set_link(link, up=False)

    def kill(self, switch: str) -> None:
        """Kills a switch, like a crash."""
        found = self.net.switch(switch)
        self._killed.add(switch)
        found.kill()

    def restore(self, element: str) -> None:
        """Restores a link that was cut, or starts a switch again, empty, and waits until it answers."""
        if element in self.net.switches:
            self.net.switch(element).start()
            self._killed.discard(element)
        else:
            self.net.set_link(element, up=True)

    def set_faults(self, link: str, faults: Faults | None, *, toward: str | None = None) -> None:
        """Sets the faults of a link's frames, such as `Faults(loss=0.01, delay_ms=2)`; None: no faults. `toward`: one
        end of the link, whose frames alone they are; None: both directions. Raises NetworkError."""
        for sender, receiver in self.net.link(link).directions(toward):
            self.net.set_faults(sender, receiver, faults)

    def capture(self, link: str, file: Path | None = None) -> Capture:
        """Captures both directions of a link from now on; a context manager. `file`: of its frames (pcap), which else
        goes with the testbed. Raises NetworkError."""
        return Capture(self.net, link, file or self.directory / f"{link}.pcap")


def _fabric_of(given: str | Path | Fabric | nx.Graph[Any]) -> Fabric:
    if isinstance(given, Fabric):
        return given
    return load_fabric(given) if isinstance(given, str | Path) else Fabric.from_graph(given)
