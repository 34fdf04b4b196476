# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed whose first hosts are machines with RDMA devices, and RoCE jobs on them."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from netfold.controller.planning.plan import Plan
from netfold.protocol.connection import Connection
from netfold.testbed.errors import RunError, RunTimeoutError
from netfold.testbed.managed import ManagedResource
from netfold.testbed.roce import taps
from netfold.testbed.roce.image import make_image
from netfold.testbed.roce.machine import BOOT_S, CommandResult, Machine, bridge, find_wrong_clocks
from netfold.testbed.roce.packages import QEMU, unpacked
from netfold.testbed.testbed import Testbed
from netfold.traffic.roce import recipe
from netfold.traffic.roce.agent import Agent

COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
POLL_S, PROGRESS_S, JOB_END_S, REASON_S = 0.1, 5.0, 30.0, 5.0
LEASE_MS = 15_000
"""Emulated machines on busy processors stall for seconds."""
PROBE_S = 2
"""Interval of link probes: five losses in a row mean a link down, and switches share processors with the machines."""

RC_TIMEOUT = 15
"""4.096 us * 2^15 = 134 ms: an emulated machine may be descheduled that long."""


@dataclass(frozen=True)
class CallReport:
    """A worker's report of one all-reduce. `packets` (without retransmissions of the device) and `epochs`: of the
    whole job so far."""

    bytes: int
    seconds: float
    wrong: int
    packets: int
    epochs: int


@dataclass(frozen=True)
class RunningWorkers:
    """The started workers of a job, by machine, and their agents' threads."""

    job: str
    answers: Mapping[str, Future[CommandResult]]
    agents: Sequence[threading.Thread]


class Lab(ManagedResource):
    """A context manager: `per_leaf` machines at each leaf, switches of `lanes`. Without `boot` the hosts are
    Mininet's until `boot` is called."""

    def __init__(
        self,
        per_leaf: int = 2,
        fabric: str = "leaf-spine-2x2",
        on_step: Callable[[str], None] = lambda _: None,
        lanes: int = 256,
        boot: bool = True,
    ) -> None:
        super().__init__()
        self._per_leaf = per_leaf
        self._fabric, self._lanes = fabric, lanes
        self._on_step = on_step
        self._boots = boot
        self._submitted: list[str] = []
        self.machines: dict[str, Machine] = {}

    def _bring_up(self) -> None:
        if shutil.which(QEMU) is None:
            raise RunError(f"'{QEMU}' is missing: apt-get install qemu-system-x86")
        if (obstacle := taps.find_obstacle()) is not None:
            raise RunError(f"the machines' links cannot be made: {obstacle}")
        root = unpacked(self._on_step)
        self.testbed = self._open.enter_context(
            Testbed(
                self._fabric,
                lanes=self._lanes,
                controller_options=("--probe-interval", str(PROBE_S)),
                on_step=self._on_step,
            )
        )
        try:
            worker = recipe.build(self.testbed.directory / "netfold-roce", root)
        except recipe.RoceBuildError as error:
            raise RunError(str(error)) from error
        self._image = make_image(root, [worker], self.testbed.directory / "initrd")
        if self._boots:
            self.boot()

    @property
    def hosts(self) -> list[str]:
        """Hosts that machines replace."""
        fabric = self.testbed.fabric
        taken: dict[str, list[str]] = {}
        for host in self.testbed.workers:
            taken.setdefault(fabric.attachment(host), []).append(host)
        return [h for hosts in taken.values() for h in hosts[: self._per_leaf]]

    def boot(self) -> None:
        """Replace the hosts by machines. One with a wrong clock is booted once more. Raises RunError, ClockError."""
        for host in self.hosts:
            bridge(self.testbed.net, host)
        self._boot(self.hosts)
        wrong = find_wrong_clocks(self.machines.values())
        if not wrong:
            return
        for error in wrong:
            self._on_step(str(error))
            self.machines[error.host].close()
        again = [error.host for error in wrong]
        self._boot(again)
        for error in find_wrong_clocks([self.machines[host] for host in again]):
            raise error

    def _boot(self, hosts: Sequence[str]) -> None:
        self._on_step(f"booting {len(hosts)} machines: {', '.join(hosts)}")
        started = time.monotonic()
        for host in hosts:
            machine = self.machines[host] = Machine(self.testbed.net, host, self._image)
            self._open.callback(machine.close)
        for host in hosts:
            self.machines[host].wait_ready(started + BOOT_S)
        self._on_step(f"booted in {time.monotonic() - started:.0f} s")

    # ---- jobs ----

    def submit(self, name: str, hosts: Sequence[str] | None = None, **spec: object) -> Plan:
        """Submit a RoCE job of machines, wait until its trees are installed, and start its parameter servers."""
        usual = {"parameter_servers": 0, "numerics": {"mode": "integer"}, "lease_ms": LEASE_MS}
        wanted: dict[str, Any] = {"transport": "roce", **usual, **spec}
        self._submitted.append(name)
        return self.testbed.submit(name, workers=hosts or self.hosts, **wanted).plan

    def reduce(
        self, name: str, flags: str, timeout_s: float, hosts: Sequence[str] | None = None
    ) -> dict[str, list[CallReport]]:
        """Run the worker on all machines of a submitted job; the calls by machine. Raises RunError."""
        running = self.start(name, flags, hosts)
        return self.finish(running, timeout_s)

    def start(self, name: str, flags: str, hosts: Sequence[str] | None = None) -> RunningWorkers:
        chosen = list(hosts or self.hosts)
        command = f"netfold-roce --agent /dev/agent --rc-timeout {RC_TIMEOUT} {flags} > /tmp/{name} && cat /tmp/{name}"
        agents = [threading.Thread(target=self._run_agent, args=(name, host), daemon=True) for host in chosen]
        for agent in agents:
            agent.start()
        return RunningWorkers(name, {host: self.machines[host].start(command) for host in chosen}, agents)

    def finish(self, running: RunningWorkers, timeout_s: float) -> dict[str, list[CallReport]]:
        """Wait for started workers and for the job's end. Raises RunError."""
        until = time.monotonic() + timeout_s
        answers = running.answers
        shown, look = 0, time.monotonic() + PROGRESS_S
        while not all(f.done() for f in answers.values()):
            self.testbed.check()
            for host, future in answers.items():
                self.machines[host].check()
                if future.done():  # the first failure ends the wait
                    self.machines[host].result(future, 1.0, "netfold-roce")
            if time.monotonic() > until:
                late = ", ".join(h for h, f in answers.items() if not f.done())
                raise RunTimeoutError(f"{late} did not finish within {timeout_s:.0f} s")
            if time.monotonic() > look:
                shown, look = self._progress(running, shown), time.monotonic() + PROGRESS_S
            time.sleep(POLL_S)  # polls results, machines, switches and the controller
        found = {}
        for host, future in answers.items():
            output = self.machines[host].result(future, 1.0, "netfold-roce")
            lines = [json.loads(x) for x in output.splitlines()]
            found[host] = [CallReport(**x) for x in lines]
        self.testbed.controller.wait_ended(running.job, JOB_END_S)
        for agent in running.agents:  # the next job's agent needs the machine's only serial port
            agent.join(JOB_END_S)
        return found

    def _progress(self, running: RunningWorkers, shown: int) -> int:
        """Reports the completed calls of the first machine."""
        host = next(iter(running.answers))
        try:
            output = self.machines[host].run(f"wc -l < /tmp/{running.job} || echo 0", 60.0)
        except RunTimeoutError:  # a busy machine; calls have their own timeouts
            return shown
        done = int(output.split()[-1])
        if done > shown:
            self._on_step(f"  {host}: {done} calls done")
        return done

    def _run_agent(self, name: str, host: str) -> None:
        stream = socket.socket(socket.AF_UNIX)
        with stream:
            stream.connect(str(self.machines[host].agent_socket))
            Agent(Connection(self.testbed.controller.address), name, host, stream).run()

    # ---- results ----

    def last_job_reason(self) -> str:
        """The controller's reason for the state of the last job; "" if there is none."""
        with contextlib.suppress(RunError, IndexError, StopIteration):
            return next(self.testbed.controller.watch(self._submitted[-1], REASON_S)).reason
        return ""

    def counters(self) -> dict[str, dict[str, int]]:
        """rxe's own counters of each machine."""
        command = f"cd {COUNTERS} && for f in *; do echo $f $(cat $f); done"
        found = {}
        for host, machine in self.machines.items():
            pairs = (line.split() for line in machine.run(command, 30.0).splitlines())
            found[host] = {name: int(value) for name, value in pairs}
        return found
