# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A fabric in Mininet whose first hosts are machines with RDMA devices, its controller, and RoCE jobs on them."""

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

from netfold.api.connection import Connection
from netfold.controller.planning.plan import Plan
from netfold.testbed.deployment import Deployment, Setup
from netfold.testbed.errors import RunError, RunTimeout
from netfold.testbed.opened import Opened
from netfold.testbed.roce.image import make_image
from netfold.testbed.roce.machine import BOOT_S, Answer, Machine
from netfold.testbed.roce.packages import QEMU, unpacked
from netfold.traffic.roce import recipe
from netfold.traffic.roce.agent import Agent

COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
LOOK_S, PROGRESS_S, OVER_S, LAST_WORDS_S = 0.1, 5.0, 30.0, 5.0
LEASE_MS = 15_000
"""Machines that are interpreted on busy processors are silent for seconds, and yet alive."""
PROBE_S = 2
"""Of links between switches: five lost in a row are a link that is down, and switches wait for machines' processors."""

RC_TIMEOUT = 15
"""4.096 us * 2^15, 134 ms: a machine without hardware virtualization may be off its processor for so long."""


@dataclass(frozen=True)
class Call:
    """One all-reduce as a worker reports it. `packets` that it sent and `epochs` that it was in are of the whole job so
    far; what its device sent again is not counted."""

    bytes: int
    seconds: float
    wrong: int
    packets: int
    epochs: int


@dataclass(frozen=True)
class Running:
    """The workers of a job, by machine, and the threads of their agents."""

    job: str
    answers: Mapping[str, Future[Answer]]
    agents: Sequence[threading.Thread]


class Lab(Opened):
    """A context manager that takes everything down again. `per_leaf` machines at each leaf, switches of `lanes`.
    Without `boot` the hosts are Mininet's own until it is called."""

    def __init__(
        self,
        per_leaf: int = 2,
        fabric: str = "leaf-spine-2x2",
        tell: Callable[[str], None] = lambda _: None,
        lanes: int = 256,
        boot: bool = True,
    ) -> None:
        super().__init__()
        self._per_leaf = per_leaf
        self._setup = Setup(fabric, lanes=lanes, controller=("--probe-s", str(PROBE_S)))
        self._tell = tell
        self._boots = boot
        self._submitted: list[str] = []
        self.machines: dict[str, Machine] = {}

    def _bring_up(self) -> None:
        if shutil.which(QEMU) is None:
            raise RunError(f"'{QEMU}' is missing: apt-get install qemu-system-x86")
        root = unpacked(self._tell)
        self.deployment = self._open.enter_context(Deployment(self._setup, self._tell))
        try:
            worker = recipe.build(self.deployment.directory / "netfold-roce", root)
        except recipe.BuildError as error:
            raise RunError(str(error)) from error
        self._image = make_image(root, [worker], self.deployment.directory / "initrd")
        if self._boots:
            self.boot()

    @property
    def hosts(self) -> list[str]:
        """Where machines are, or will be."""
        fabric = self.deployment.fabric
        taken: dict[str, list[str]] = {}
        for host in self.deployment.workers:
            taken.setdefault(fabric.attachment(host), []).append(host)
        return [h for hosts in taken.values() for h in hosts[: self._per_leaf]]

    def boot(self) -> None:
        """Machines take the hosts' places. Raises RunError."""
        hosts = self.hosts
        self._tell(f"booting {len(hosts)} machines: {', '.join(hosts)}")
        started = time.monotonic()
        for host in hosts:
            machine = self.machines[host] = Machine(self.deployment.net, host, self._image)
            self._open.callback(machine.close)
        for machine in self.machines.values():
            machine.wait_ready(started + BOOT_S)
        self._tell(f"they took {time.monotonic() - started:.0f} s")

    # ---- jobs ----

    def submit(self, name: str, hosts: Sequence[str] | None = None, **spec: object) -> Plan:
        """Admits a RoCE job of machines, waits until its trees are installed, and starts its parameter servers."""
        usual = {"parameter_servers": 0, "numerics": {"mode": "integer"}, "lease_ms": LEASE_MS}
        wanted = {"transport": "roce", **usual, **spec}
        self._submitted.append(name)
        plan = self.deployment.submit(name, list(hosts or self.hosts), **wanted)
        folder = self.deployment.directory / name
        folder.mkdir()
        self.deployment.start_servers(name, plan, folder)
        return plan

    def reduce(
        self, name: str, flags: str, timeout_s: float, hosts: Sequence[str] | None = None
    ) -> dict[str, list[Call]]:
        """Run the worker on all machines of an admitted job; its calls by machine. Raises RunError."""
        running = self.start(name, flags, hosts)
        return self.finish(running, timeout_s)

    def start(self, name: str, flags: str, hosts: Sequence[str] | None = None) -> Running:
        chosen = list(hosts or self.hosts)
        command = f"netfold-roce --agent /dev/agent --rc-timeout {RC_TIMEOUT} {flags} > /tmp/{name} && cat /tmp/{name}"
        agents = [threading.Thread(target=self._attend, args=(name, host), daemon=True) for host in chosen]
        for agent in agents:
            agent.start()
        return Running(name, {host: self.machines[host].start(command) for host in chosen}, agents)

    def finish(self, running: Running, timeout_s: float) -> dict[str, list[Call]]:
        """Waits for workers that were started, and for the job's end. Raises RunError."""
        until = time.monotonic() + timeout_s
        answers = running.answers
        shown, look = 0, time.monotonic() + PROGRESS_S
        while not all(f.done() for f in answers.values()):
            self.deployment.check()
            for host, future in answers.items():
                self.machines[host].check()
                if future.done():  # the first that failed ends the wait
                    self.machines[host].result(future, 1.0, "netfold-roce")
            if time.monotonic() > until:
                late = ", ".join(h for h, f in answers.items() if not f.done())
                raise RunTimeout(f"{late} did not finish within {timeout_s:.0f} s")
            if time.monotonic() > look:
                shown, look = self._progress(running, shown), time.monotonic() + PROGRESS_S
            time.sleep(LOOK_S)  # whichever ends first: an answer, a machine, a switch, the controller
        found = {}
        for host, future in answers.items():
            output = self.machines[host].result(future, 1.0, "netfold-roce")
            lines = [json.loads(x) for x in output.splitlines()]
            found[host] = [Call(**x) for x in lines]
        self.deployment.service.wait_over(running.job, OVER_S)
        for agent in running.agents:  # a machine has one serial port for them: the next job's agent wants it
            agent.join(OVER_S)
        return found

    def _progress(self, running: Running, shown: int) -> int:
        """Tells of the first machine's calls that are done by now."""
        host = next(iter(running.answers))
        try:
            said = self.machines[host].run(f"wc -l < /tmp/{running.job} || echo 0", 60.0)
        except RunTimeout:  # a busy machine; its calls have a deadline of their own
            return shown
        done = int(said.split()[-1])
        if done > shown:
            self._tell(f"  {host}: {done} calls done")
        return done

    def _attend(self, name: str, host: str) -> None:
        stream = socket.socket(socket.AF_UNIX)
        with stream:
            stream.connect(str(self.machines[host].agent_socket))
            Agent(Connection(self.deployment.service.address), name, host, stream).run()

    # ---- what happened ----

    def last_words(self) -> str:
        """What the controller says of the job that was submitted last; "" if that is nothing."""
        with contextlib.suppress(RunError, IndexError, StopIteration):
            return next(self.deployment.service.watch(self._submitted[-1], LAST_WORDS_S)).reason
        return ""

    def counters(self) -> dict[str, dict[str, int]]:
        """rxe's own counters of each machine."""
        command = f"cd {COUNTERS} && for f in *; do echo $f $(cat $f); done"
        found = {}
        for host, machine in self.machines.items():
            pairs = (line.split() for line in machine.run(command, 30.0).splitlines())
            found[host] = {name: int(value) for name, value in pairs}
        return found
