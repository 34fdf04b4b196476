# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Large jobs at one controller: from submit to running, what heartbeats cost, and how long a loss and a restart take.

python -m netfold.evaluation.speed.member_streams [--members 64,256,1024] [--seconds 10]
"""

from __future__ import annotations

import math
import multiprocessing
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from netfold.controller.jobs.file import resolve_job
from netfold.evaluation.core.command import Integers, integers, run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.speed.member_streams.control import SAVE, control, socket_of
from netfold.evaluation.speed.member_streams.streams import Assigned, Join, Lose, members
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import Connection as Address
from netfold.protocol.connection import open_channel
from netfold.testbed.errors import RunError
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine

PROCESSES = 2
HOSTS_PER_LEAF, SPINES = 16, 16
DEADLINE_S = 120.0
JOB = "large"


@dataclass(frozen=True)
class MemberStreamsRow(Row):
    """Seconds from the submission until the job is planned (the RPC returns), until it runs (all switches have its
    entries), and until the last member has its assignment. Parts of a core that the controller takes without a job and
    with heartbeats. `replaced_s`: from the end of a silent member's lease until the last member has the next epoch.
    `returned_s`: from a controller's end until the last member has its assignment from the next one, in the same epoch.
    `show_s`, `show_bytes`: of GetJob."""

    members: int
    switches: int
    planned_s: float
    running_s: float
    assigned_s: float
    idle_share: float
    share: float
    heartbeats_s: float
    replaced_s: float
    returned_s: float
    show_s: float
    show_bytes: int

    @property
    def heartbeat_share(self) -> float:
        return self.share - self.idle_share


COLUMNS = (
    Column[MemberStreamsRow]("members", lambda r: r.members, ",d"),
    Column[MemberStreamsRow]("switches", lambda r: r.switches),
    Column[MemberStreamsRow]("planned, s", lambda r: r.planned_s, ".2f"),
    Column[MemberStreamsRow]("running, s", lambda r: r.running_s, ".2f"),
    Column[MemberStreamsRow]("all assigned, s", lambda r: r.assigned_s, ".2f"),
    Column[MemberStreamsRow]("heartbeats/s", lambda r: r.heartbeats_s, ",.0f"),
    Column[MemberStreamsRow]("of a core", lambda r: r.heartbeat_share, ".1%"),
    Column[MemberStreamsRow]("loss replaced, s", lambda r: r.replaced_s, ".2f"),
    Column[MemberStreamsRow]("restart, s", lambda r: r.returned_s, ".2f"),
    Column[MemberStreamsRow]("show, ms", lambda r: 1e3 * r.show_s, ".0f"),
)


@dataclass(frozen=True)
class MemberStreams(Experiment[MemberStreamsRow]):
    """Large jobs at one controller: from submit to running, what heartbeats cost, how long a loss and a restart take.

    Each member has a gRPC connection and a stream of its own, in two processes. The controller is whole, in a process
    of its own; its switches are in memory. It runs in real time: other programs on the machine show in all figures."""

    name = "bench-member-streams"
    members: Annotated[Integers, integers("Members of the job.")] = Integers((64, 256, 1024))
    seconds: Annotated[float, typer.Option(help="Duration of the measurement of heartbeats.")] = 10.0
    lease_ms: Annotated[
        int | None, typer.Option(min=300, help="Lease of the members; default: the job's.")
    ] = None

    def rows(self, notify: Notify) -> Iterator[MemberStreamsRow]:
        """Raises RunError."""
        for count in self.members:
            notify(f"{count} members")
            yield measure(count, self.seconds, self.lease_ms)

    def tables(self, rows: Sequence[MemberStreamsRow]) -> Iterable[Table]:
        return [table("One job of many members", COLUMNS, rows)]


def fabric_for(members: int) -> Fabric:
    """Full leaves of 16 hosts under 16 spines."""
    leaves = max(2, math.ceil(members / HOSTS_PER_LEAF))
    return leaf_spine(leaves, SPINES, HOSTS_PER_LEAF)


def measure(count: int, seconds: float, lease_ms: int | None) -> MemberStreamsRow:
    """Raises RunError."""
    fabric = fabric_for(count)
    hosts = tuple(h.name for h in fabric.hosts)[:count]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        first_controller = stack.enter_context(ExitStack())
        controller = first_controller.enter_context(child(control, fabric, Path(folder)))
        answer(controller)
        groups = [
            stack.enter_context(child(members, socket_of(Path(folder)), hosts[number::PROCESSES]))
            for number in range(PROCESSES)
        ]
        channel = stack.enter_context(open_channel(Address(socket_of(Path(folder)))))
        stub = rpc.ControllerStub(channel)
        idle = share_of_core(controller, seconds)
        spec = f"name: {JOB}\nworkers: [{', '.join(hosts)}]\non_worker_loss: continue\n"
        if lease_ms is not None:
            spec += f"lease_ms: {lease_ms}\n"
        lease_s = resolve_job(spec, fabric).lease_ms / 1e3
        began = time.monotonic()
        stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec), timeout=DEADLINE_S)
        planned = time.monotonic()
        for group in groups:
            group.send(Join(JOB, lease_s))
        running = until_running(stub)
        first = [assigned(group, len(hosts), 0) for group in groups]
        share = share_of_core(controller, seconds)
        shown = time.monotonic()
        job = stub.GetJob(pb.JobName(name=JOB), timeout=DEADLINE_S)
        shown = time.monotonic() - shown
        groups[0].send(Lose(hosts[0]))
        last_heartbeat = answer(groups[0])
        replaced = [assigned(group, len(hosts) - 1, max(a.epoch for a in first)) for group in groups]
        controller.send(SAVE)
        answer(controller)
        restarted = time.monotonic()
        first_controller.close()
        answer(stack.enter_context(child(control, fabric, Path(folder))))
        returned = [assigned(group, len(hosts) - 1, 0, stream=2) for group in groups]
        if {a.epoch for a in returned} != {a.epoch for a in replaced}:
            raise RunError("the controller's restart began another epoch")
    return MemberStreamsRow(
        members=count,
        switches=len(fabric.switches),
        planned_s=planned - began,
        running_s=running - began,
        assigned_s=max(a.at_s for a in first) - began,
        idle_share=idle,
        share=share,
        heartbeats_s=count * 3 / lease_s,
        replaced_s=max(a.at_s for a in replaced) - last_heartbeat - lease_s,
        returned_s=max(a.at_s for a in returned) - restarted,
        show_s=shown,
        show_bytes=job.ByteSize(),
    )


def until_running(stub: rpc.ControllerStub) -> float:
    """The time at which the job runs. Raises RunError if it ends."""
    for job in stub.WatchJob(pb.JobName(name=JOB), timeout=DEADLINE_S):
        if job.state == pb.RUNNING:
            return time.monotonic()
        if job.state in (pb.FAILED, pb.CANCELED, pb.DONE):
            raise RunError(f"the job ended before it ran: {job.reason}")
    raise RunError("the controller ended before the job ran")


def assigned(group: Connection, workers: int, after_epoch: int, stream: int = 1) -> Assigned:
    """The group's next assignments of so many workers, all by their streams from this one on. Raises RunError."""
    while True:
        found = answer(group)
        if not isinstance(found, Assigned):
            continue
        if (found.workers, found.stream >= stream) == (workers, True) and found.epoch > after_epoch:
            return found


def share_of_core(controller: Connection, seconds: float) -> float:
    before, began = processor_s(controller), time.monotonic()
    time.sleep(seconds)  # the duration of the measurement
    return (processor_s(controller) - before) / (time.monotonic() - began)


def processor_s(controller: Connection) -> float:
    controller.send("processor time")
    return float(answer(controller))


def answer(pipe: Connection) -> Any:
    """Raises RunError."""
    try:
        if pipe.poll(DEADLINE_S):
            return pipe.recv()
    except (EOFError, OSError) as error:
        raise RunError("a process of the measurement has ended; its output says why") from error
    raise RunError(f"a process of the measurement did not answer within {DEADLINE_S:g} s")


@contextmanager
def child(work: Any, *arguments: Any) -> Iterator[Connection]:
    """A process that runs `work(*arguments, pipe)`, and ends with its pipe."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(*arguments, there), daemon=False)
    process.start()
    there.close()
    try:
        yield here
    finally:
        here.close()
        process.join(10)
        if process.is_alive():
            process.kill()
            process.join()


if __name__ == "__main__":
    run_command(MemberStreams)
