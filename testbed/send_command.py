# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold host send`: one gradient packet made by hand, what each switch did with it, and the RESULT."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from netfold.controller.operator.controller_client import JOB_FAILED, REFUSED, call_controller, fail
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.environment import Variable
from netfold.protocol.listing import listing
from netfold.protocol.options import ControllerOptions, reaches_controller
from netfold.protocol.runtime import DEFAULT_NAME
from netfold.protocol.wire import ROUNDS, Kind, Packet, Verdict
from netfold.testbed.network.errors import NetworkError, NoNamespacesError
from netfold.testbed.network.isolation import enter_network
from netfold.testbed.network.options import NameOption
from netfold.testbed.network.state import RunDirectory
from netfold.testbed.network.tools import tool
from netfold.testbed.packet_trace import Hop, HopVerdict, Trace, counts_of, trace, upstream_path
from netfold.traffic.membership.host import own_addresses
from netfold.traffic.packets.transport import TransportError
from netfold.traffic.workloads.craft import packet_socket, receive_result, shown_lanes

send = typer.Typer()

ARRIVAL_S = 5.0
"""Seconds in which a packet, and a RESULT that was sent, arrive also on a busy machine."""
TIMEOUT_MAX_S = 86_400.0
_POLL_S = 0.05
_ENDED = (pb.FAILED, pb.DONE, pb.CANCELED)

_MEANINGS = {
    Verdict.ACCUMULATED: "adds it to the sum",
    Verdict.SUM_SENT: "adds it, which completes its sum: the sum goes up",
    Verdict.RESULT_SENT: "adds it, which completes the sum: the RESULT goes to all workers",
    Verdict.SUM_RESENT: "has it in its complete sum already: sends the sum up again",
    Verdict.RESULT_RESENT: "has it in the complete sum already: sends the RESULT again, to this child alone",
    Verdict.FORWARDED: "sends it on towards the switch that adds it",
    Verdict.DUPLICATE: "drops it: it is in the sum already, and the sum is not complete",
    Verdict.STALE_EPOCH: "refuses it: the tree is installed with another job epoch",
    Verdict.STALE_CHUNK: "refuses it: the slot holds a newer chunk",
    Verdict.BAD_SLOT: "refuses it: the slot is outside the tree's range",
    Verdict.UNADMITTED: "refuses it: no entry for this port, UDP port, tree and child",
    Verdict.MALFORMED: "refuses it: a field, a length or a checksum is wrong",
    Verdict.UNROUTED: "drops it: the tree has no way out of this switch",
    Verdict.EXPIRED: "drops it: its time to live is over",
    Verdict.LATE: "leaves it out: the quorum's sum was sealed without it",
    Verdict.SLOT_REUSED: "refuses it: its slot holds a newer chunk",
}
_ADDS = {Verdict.ACCUMULATED, Verdict.SUM_SENT, Verdict.RESULT_SENT}
_ANSWERS = {Verdict.RESULT_SENT, Verdict.RESULT_RESENT}


@send.command()
@reaches_controller
def run_send(
    where: ControllerOptions,
    job: Annotated[str, typer.Option(help="A job with `sandbox: true`.")],
    host: Annotated[str, typer.Option(help="The worker of the job whose packet it is.")],
    value: Annotated[int, typer.Option(min=-(2**31), max=2**31 - 1, help="Value of each lane.")] = 1,
    chunk: Annotated[int, typer.Option(min=0, help="Number of the chunk in its tree.")] = 0,
    tree: Annotated[int, typer.Option(min=0, help="Tree; 0: the job's first one.", show_default=False)] = 0,
    epoch: Annotated[
        int | None,
        typer.Option(min=0, max=4095, help="Another job epoch than the current one, to see it refused."),
    ] = None,
    child: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Another child number than the host's.")
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=TIMEOUT_MAX_S,
            help="Seconds to wait for the RESULT while others' packets are missing.",
        ),
    ] = 0.0,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Send one gradient packet made by hand from a host of a sandbox job; print what each switch did with it, and the
    RESULT.

    The controller has all fields of the packet. The same command again is a retransmission. The command runs in the
    host of the network that is up, or on the machine that has the host's address.

    Exit codes: 0 sent, 3 refused before it is sent, 4 no controller answers, 5 no such job, 6 the packet arrived
    nowhere.
    """
    found, address = call_controller(where, lambda stub: _job_and_address(stub, job, host))
    _refuse(found, host)
    fields = next((t for t in found.packets.trees if tree in (0, t.tree)), None)
    if fields is None:
        fail(REFUSED, f"job '{job}' has no tree {tree}; its trees are {listing(_trees(found))}")
    if chunk >= fields.slots * ROUNDS:
        fail(
            REFUSED,
            f"tree {fields.tree} has no chunk {chunk}: {fields.slots} slots and {ROUNDS} rounds number chunks 0 to "
            f"{fields.slots * ROUNDS - 1}",
        )
    packet = Packet(
        Kind.GRADIENT,
        fields.tree,
        found.epoch if epoch is None else epoch,
        *divmod(chunk, fields.slots),
        fields.children[host] if child is None else child,
        (value,) * found.packets.lanes,
    )
    try:
        _enter_host(name, host, address)
        with packet_socket(found.packets.udp_port, fields.root_address) as sock:
            sender = _Sender(found, host, packet, chunk, sock)
            for line in sender.lines(where):
                typer.echo(line)
            result = receive_result(sock, packet, max(timeout, ARRIVAL_S if sender.is_answered else 0.0))
    except (NetworkError, TransportError) as error:
        fail(JOB_FAILED, str(error))
    for line in sender.outcome(result):
        typer.echo(line)
    if sender.trace.missing is not None and result is None:
        raise typer.Exit(JOB_FAILED)


async def _job_and_address(stub: pb_grpc.ControllerStub, job: str, host: str) -> tuple[pb.Job, str]:
    found = await stub.GetJob(pb.JobName(name=job), timeout=10)
    hosts = await stub.ListHosts(pb.ListHostsRequest(), timeout=10)
    return found, next((h.address for h in hosts.hosts if h.name == host), "")


def _trees(job: pb.Job) -> list[str]:
    return [str(t.tree) for t in job.packets.trees]


def _refuse(job: pb.Job, host: str) -> None:
    """Exit with the reason if no packet may be made by hand for this host."""
    state = pb.JobState.Name(job.state).lower()
    workers = [m.host for m in job.members if not m.parameter_server]
    if job.state in _ENDED:
        fail(REFUSED, f"job '{job.name}' has ended ({state}: {job.reason}); submit it again")
    if not job.sandbox:
        fail(
            REFUSED,
            f"job '{job.name}' is no sandbox: packets made by hand would count as those of its workers, which would "
            "fail. Submit a job of its own with `sandbox: true` (docs/tutorials/a-gradient-by-hand.md)",
        )
    if host not in workers:
        fail(REFUSED, f"{host!r} is no worker of job '{job.name}'; its workers are {listing(workers)}")
    if not job.packets.trees:
        why = f" ({job.reason})" if job.reason else ""
        fail(REFUSED, f"job '{job.name}' is {state}: switches have no entries of it yet{why}")


def _enter_host(name: str, host: str, address: str) -> None:
    """Run this command again in the host's namespace, unless this machine is the host. Raises NetworkError."""
    if address in own_addresses():
        return
    try:
        enter_network(name)
        state = RunDirectory(name).up()
    except NetworkError as error:
        raise NetworkError(f"this machine has no address {address} of {host}, and {error}") from error
    if not state.has_namespaces:
        raise NoNamespacesError(name)
    found = state.host(host)
    if found.ip != address:
        raise NetworkError(
            f"{host} has address {address} at the controller, and {found.ip} in network '{name}': expected the "
            "controller of this network"
        )
    environment = {**os.environ, Variable.NETWORK: state.run, Variable.NAME: name}
    command = ["mnexec", "-a", str(found.pid), sys.executable, *sys.orig_argv[1:]]
    os.execve(tool("mnexec"), command, environment)


@dataclass
class _Sender:
    """Sends the packet, and describes what follows. `trace` is empty before it is sent."""

    job: pb.Job
    host: str
    packet: Packet
    chunk: int
    sock: socket.socket
    trace: Trace = field(default_factory=lambda: Trace(()))

    @property
    def is_answered(self) -> bool:
        """Whether a RESULT is on its way: the root sent one, or is a parameter server."""
        last = self.trace.steps[-1].verdict if self.trace.steps else None
        return self.trace.missing is None and last in _ANSWERS | {
            Verdict.FORWARDED,
            Verdict.SUM_SENT,
            Verdict.SUM_RESENT,
        }

    def lines(self, where: ControllerOptions) -> Iterator[str]:
        packet = self.packet
        yield _line(
            self.host,
            f"sends GRADIENT of chunk {self.chunk} (tree {packet.tree}, epoch {packet.epoch}, round {packet.round}, "
            f"slot {packet.slot}, child {packet.child}): {shown_lanes(packet.lane)}",
        )
        before, after = call_controller(where, self._sent)
        for step in self.trace.steps:
            slot = after.get(step.hop.switch)
            yield _line(
                step.hop.switch, f"{step.verdict.label}: {self._meaning(step, before)}{_contents(slot)}"
            )

    def outcome(self, result: Packet | None) -> Iterator[str]:
        if result is not None:
            yield _line(self.host, f"receives RESULT of chunk {self.chunk}: {shown_lanes(result.lane)}")
        elif self.trace.missing is not None:
            last = self.trace.steps[-1].hop.switch if self.trace.steps else self.host
            why = f"it was lost behind {last}, or the switch is slow"
            yield _line(self.trace.missing, f"has not counted it within {ARRIVAL_S:g} s: {why}")
        elif self.is_answered:
            yield _line(self.host, f"receives no RESULT within {ARRIVAL_S:g} s; send it again")
        else:
            yield _line(self.host, "receives no RESULT")

    async def _sent(
        self, stub: pb_grpc.ControllerStub
    ) -> tuple[dict[str, pb.SlotContents], dict[str, pb.SlotContents]]:
        """Send the packet, and follow it until its way is over. Returns the slot of each switch on its way that adds
        up, from before and after it."""
        status = await stub.GetStatus(pb.StatusRequest(fresh=True), timeout=10)
        path = upstream_path(self._plan_tree(), self.host, {s.name for s in status.switches})
        slots = await self._slots(stub, path)
        self.sock.send(self.packet.pack())
        before, deadline = counts_of(status), time.monotonic() + ARRIVAL_S
        while True:
            status = await stub.GetStatus(pb.StatusRequest(fresh=True), timeout=10)
            self.trace = trace(path, self.packet.tree, before, counts_of(status))
            if self.trace.missing is None or time.monotonic() > deadline:
                return slots, await self._slots(stub, [step.hop for step in self.trace.steps])
            await asyncio.sleep(_POLL_S)

    async def _slots(self, stub: pb_grpc.ControllerStub, hops: list[Hop]) -> dict[str, pb.SlotContents]:
        found = {}
        for switch in (hop.switch for hop in hops if hop.adds):
            request = pb.ReadSlotRequest(
                switch=switch, job=self.job.name, tree=self.packet.tree, slot=self.packet.slot
            )
            found[switch] = await stub.ReadSlot(request, timeout=10)
        return found

    def _plan_tree(self) -> Mapping[str, Any]:
        plan: dict[str, Any] = json.loads(self.job.plan_json)
        trees = zip(plan["installed"], plan["trees"], strict=True)
        return next(tree for numbers, tree in trees if numbers["tree"] == self.packet.tree)

    def _meaning(self, step: HopVerdict, before: Mapping[str, pb.SlotContents]) -> str:
        """The meaning of a verdict. A contribution of a newer chunk than the slot's claims the slot."""
        meaning, slot = _MEANINGS[step.verdict], before.get(step.hop.switch)
        if step.verdict not in _ADDS or slot is None:
            return meaning
        if (slot.epoch, slot.round) == (self.packet.epoch, self.packet.round):
            return meaning
        held = f", which held chunk {slot.round * slot.slots + self.packet.slot}"
        return f"claims slot {self.packet.slot}{held if slot.epoch == self.packet.epoch else ''}; {meaning}"


def _contents(slot: pb.SlotContents | None) -> str:
    if slot is None or not slot.epoch:
        return ""
    missing = f", lacks {listing(slot.missing)}" if slot.missing else ""
    return f". Its sum has {listing(slot.contributors)}{missing}"


def _line(node: str, text: str) -> str:
    return f"{node:<8}{text}"
