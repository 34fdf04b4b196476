# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Three members of etcd and three controllers, each process on a machine of its own, and the switches that they
control."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import grpc

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.etcd_client import EtcdAddress, EtcdClient
from netfold.controller.jobs.etcd_engine import engine_of
from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.store import Store
from netfold.evaluation.speed.etcd_cluster import EtcdPlace
from netfold.protocol.connection import Connection, connection
from tests.controller.awake import Awake
from tests.controller.etcd_server import EtcdServer, etcd_server
from tests.ha.machines import Machine, Machines, machines
from tests.ha.member import Member
from tests.ha.switches import LANES, Switches, switches
from tests.simulation.world import ViolationError
from tests.traffic.tls import Tls, make_certificate

MEMBERS = ("etcd1", "etcd2", "etcd3")
CONTROLLERS = ("ctl1", "ctl2", "ctl3")
PORT = 9600
REST_S = 120.0
"""Seconds without a fault within which all is at rest; a machine that has stalled does not count them."""
POLL_S = 0.1
JUMP_S = 3600.0
_STATES = re.compile(r"netfold controller: (serving at|standby|stands by|starts)")

PRELUDE = f"""
import signal, time
_wall_s, _ahead_s = time.time, [0.0]
time.time = lambda: _wall_s() + _ahead_s[0]
signal.signal(signal.SIGUSR1, lambda *_: _ahead_s.__setitem__(0, {JUMP_S}))
signal.signal(signal.SIGUSR2, lambda *_: _ahead_s.__setitem__(0, 0.0))
from netfold.cli import main
main()
"""
"""The wall clock of a controller jumps ahead by SIGUSR1, and back by SIGUSR2."""
_UNUSABLE = 4
"""The exit code of a controller whose store cannot be used."""


class ControllerOfSystem:
    """A controller, which may be killed and started again."""

    def __init__(self, machine: Machine, arguments: Sequence[object]) -> None:
        self.name = machine.name
        self.address = f"{machine.address}:{PORT}"
        self.machine = machine
        self.log = machine.folder / "log"
        self._arguments = arguments
        self._read = 0
        self._state, self._traceback = "", ""
        self.start()

    def start(self) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("NETFOLD_")} | {
            "COLUMNS": "300"
        }
        command = [
            *(sys.executable, "-c", PRELUDE, "controller", "run", *self._arguments, "--listen", self.address)
        ]
        with self.log.open("ab") as log:
            log.write(b"netfold controller: starts\n")
            self.process = self.machine.popen(command, stdout=log, stderr=log, env=environment)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @property
    def leads(self) -> bool:
        """Whether it led when it last wrote of that."""
        return self._look() == "serving at" and self.is_alive

    @property
    def has_started(self) -> bool:
        return self._look() != "starts" and self.is_alive

    def _look(self) -> str:
        """Read what is new in its log, and return its last state."""
        with self.log.open("rb") as log:
            log.seek(self._read)
            text = log.read().rpartition(b"\n")[0]
        self._read += len(text)
        for state in _STATES.findall(text.decode(errors="replace")):
            self._state = state
        if b"Traceback" in text:
            self._traceback = text.decode(errors="replace").partition("Traceback")[2][:4000]
        return self._state

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def check(self) -> None:
        """Start one again that found no etcd when it started, as its unit does. Raises ViolationError for one that has
        ended by itself otherwise, or has written a traceback."""
        if self._look() == "starts" and self.process.poll() == _UNUSABLE:
            self.start()
        elif not self.is_alive:
            last = self.log.read_text(errors="replace")[-2000:]
            raise ViolationError(f"{self.name} ended with {self.process.poll()}:\n{last}")
        if self._traceback:
            raise ViolationError(f"{self.name}: Traceback{self._traceback}")


class System:
    """`state` is the address of the store, `where` that of all controllers."""

    def __init__(
        self, own: Machines, etcd: EtcdServer, fabric: Switches, tls: Tls, folder: Path, stack: AsyncExitStack
    ) -> None:
        self.machines = own
        self.etcd = etcd
        self.switches = fabric
        self.state = etcd.state("netfold")
        (folder / "token").write_text("a-token-of-operators\n")
        arguments = [
            *(fabric.fabric_file, "--switches", fabric.file, "--state", self.state, "--lanes", LANES),
            *("--tls-cert", tls.certificate, "--tls-key", tls.key, "--tokens", folder / "token"),
            *("--probe-interval", 0),
        ]
        self.controllers: dict[str, ControllerOfSystem] = {}
        for name in CONTROLLERS:
            made = self.controllers[name] = ControllerOfSystem(own.by_name[name], arguments)
            stack.callback(lambda made=made: made.kill())
        addresses = ",".join(c.address for c in self.controllers.values())
        self.where: Connection = connection(addresses, tls.certificate, folder / "token")
        self._client = stack.enter_context(closing(EtcdClient(EtcdAddress.of(self.state))))
        self.stopped: set[subprocess.Popen[bytes]] = set()

    # ---- roles ---------------------------------------------------------------------------------------

    def controllers_by_role(self) -> list[str]:
        """The one that leads comes first."""
        return sorted(CONTROLLERS, key=lambda name: not self.controllers[name].leads)

    async def members_by_role(self) -> list[str]:
        """etcd's leader comes first."""
        found = await asyncio.to_thread(self._client.members)
        leads = {name: member.leads for name, member in zip(MEMBERS, found, strict=True)}
        return sorted(MEMBERS, key=lambda name: not leads[name])

    # ---- faults --------------------------------------------------------------------------------------

    def process(self, name: str) -> subprocess.Popen[bytes]:
        """The process of a machine."""
        if name in MEMBERS:
            return self.etcd.process(MEMBERS.index(name))
        return self.controllers[name].process

    def is_alive(self, name: str) -> bool:
        if name in MEMBERS:
            return MEMBERS.index(name) in self.etcd.alive
        return self.controllers[name].is_alive

    def kill(self, name: str) -> None:
        if not self.is_alive(name):
            return
        self.resume(name)
        if name in MEMBERS:
            self.etcd.kill(MEMBERS.index(name))
        else:
            self.controllers[name].kill()

    def start(self, name: str) -> None:
        if self.is_alive(name):
            return
        if name in MEMBERS:
            self.etcd.start(MEMBERS.index(name))
        else:
            self.controllers[name].start()

    def pause(self, name: str) -> None:
        if self.is_alive(name):
            self.process(name).send_signal(signal.SIGSTOP)
            self.stopped.add(self.process(name))

    def resume(self, name: str) -> None:
        if self.is_alive(name) and (process := self.process(name)) in self.stopped:
            process.send_signal(signal.SIGCONT)
            self.stopped.discard(process)

    def jump(self, name: str, *, is_ahead: bool) -> None:
        if self.is_alive(name) and self.controllers[name].has_started:
            self.process(name).send_signal(signal.SIGUSR1 if is_ahead else signal.SIGUSR2)

    def heal(self) -> None:
        """End all faults."""
        self.machines.heal()
        for name in (*MEMBERS, *CONTROLLERS):
            self.resume(name)
            self.start(name)

    # ---- rest ----------------------------------------------------------------------------------------

    async def rest(self, members: Mapping[str, Sequence[Member]]) -> None:
        """Wait until no job is on its way, all switches hold what the store asks for, and the members of each job have
        its epoch. Raises ViolationError."""
        awake, fault = Awake(), ""
        while awake() < REST_S:
            for controller in self.controllers.values():
                controller.check()
            try:
                if not (fault := await self._unrest(members)):
                    return
            except (StoreError, grpc.aio.AioRpcError) as error:
                fault = str(error)
            await asyncio.sleep(POLL_S)
        raise ViolationError(f"no rest within {REST_S:g} s: {fault}")

    async def _unrest(self, members: Mapping[str, Sequence[Member]]) -> str:
        """The first thing that is not at rest; "": all is. Raises StoreError and AioRpcError."""
        if waiting := [c.name for c in self.controllers.values() if not c.has_started]:
            return f"{waiting[0]} has not started"
        if not any(c.leads for c in self.controllers.values()):
            return "no controller leads"
        store = await asyncio.to_thread(Store, engine_of(self.state), "")
        try:
            jobs = {job.name: job for job in store.jobs()}
            desired = self.switches.desired(store)
        finally:
            store.close()
        if moving := [n for n, j in jobs.items() if j.state in (JobState.INSTALLING, JobState.QUEUED)]:
            return f"job {moving[0]} is not installed"
        for name, members_of_job in members.items():
            for member in members_of_job:
                member.check()
                if fault := member.unrest(jobs.get(name)):
                    return fault
        held = await self.switches.held()
        for name, wanted in desired.items():
            more = [str(held[name][k]) for k in held[name].keys() - wanted.keys()]
            less = [str(wanted[k]) for k in wanted.keys() - held[name].keys()]
            other = [str(wanted[k]) for k in wanted.keys() & held[name].keys() if wanted[k] != held[name][k]]
            if more or less or other:
                return f"{name} has too much {more[:3]}, lacks {less[:3]}, and differs in {other[:3]}"
        return ""


@asynccontextmanager
async def system(folder: Path) -> AsyncIterator[System]:
    """A system whose etcd answers; its controllers start."""
    async with AsyncExitStack() as stack:
        own = stack.enter_context(machines((*MEMBERS, *CONTROLLERS), folder))
        addresses = [m.address for m in own.by_name.values()]
        tls = make_certificate(folder, addresses=addresses)
        fabric = await stack.enter_async_context(switches(folder))
        places = [EtcdPlace(own.by_name[n].address, own.by_name[n].inside) for n in MEMBERS]
        etcd = stack.enter_context(etcd_server(folder, tls=tls, places=places))
        yield System(own, etcd, fabric, tls, folder, stack)
