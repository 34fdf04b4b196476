# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""perftest's `ib_send_bw` (Debian's) on machines of a lab: between two of them, or as the workers of a job.

As unmodified workers they send around the job's ring. `tc` blocks their packets until the switches admit the
connections, so that the first packet sent is aggregated.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass

from netfold.controller.jobs.rings import successors
from netfold.protocol.connection import Connection
from netfold.testbed.errors import RunError, RunTimeoutError
from netfold.testbed.roce.lab import Lab
from netfold.testbed.roce.machine import CommandResult, Machine
from netfold.traffic.roce.adopted import AdoptedQueuePairs, Adoption

PORT, RING_PORT = 18515, 18516
PATH_MTU = 1024
PLAIN_BYTES, PLAIN_MESSAGES = 16384, 200
STEP_S, CONNECT_S, POLL_S = 60.0, 180.0, 0.2
"""`CONNECT_S`: all programs start at once, in emulated machines."""

# `trap` discards a packet silently; `drop` would notify the device, which retries at once and forever.
_BLOCK = (
    "/bin/tc qdisc add dev eth0 clsact && /bin/tc filter add dev eth0 egress protocol ip u32 "
    "match ip protocol 17 0xff match ip dport 4791 0xffff action trap"
)
_END = "killall ib_send_bw 2> /dev/null || true"
_CONNECTED = ("RTR", "RTS")  # a receiver stays in RTR
_RELEASE = "/bin/tc qdisc del dev eth0 clsact || true"


@dataclass(frozen=True)
class Messages:
    """`in_flight`: messages sent before the first ack. Default slots of a job suffice for two."""

    bytes: int = PLAIN_BYTES
    count: int = PLAIN_MESSAGES
    in_flight: int = 2

    @property
    def packets_in_flight(self) -> int:
        return self.in_flight * self.bytes // PATH_MTU

    def flags(self, port: int) -> str:
        return f"-d rxe0 -x 1 -m {PATH_MTU} -s {self.bytes} -n {self.count} -t {self.in_flight} -Q 1 -u 16 -p {port} -F"


SEND, WRITE = "ib_send_bw -e", "ib_write_bw"
"""`-e` waits for events: programs that poll starve the switches. `ib_write_bw` only polls."""

PLAIN = Messages(in_flight=16)


def plain_connection(lab: Lab, program: str = SEND, messages: Messages = PLAIN) -> float:
    """MB/s of a plain connection across the fabric. Raises RunError if it breaks."""
    first, last = (lab.machines[h] for h in (lab.hosts[0], lab.hosts[-1]))
    server = last.start(f"{program} {messages.flags(PORT)}")
    _wait_listening(last, PORT, server)
    rate = _rate(first.run(f"{program} {messages.flags(PORT)} {last.address}", 300.0), messages)
    last.result(server, STEP_S, program)
    return rate


def ring(lab: Lab, name: str, messages: Messages, timeout_s: float) -> dict[str, float]:
    """`ib_send_bw` on all machines as the workers of a submitted job; MB/s by machine. Raises RunError."""
    successor_of = successors(lab.testbed.fabric, lab.hosts)
    with ExitStack() as stack:
        where = Connection(lab.testbed.controller.address)
        members = {h: stack.enter_context(Adoption(where, name, h)) for h in lab.hosts}
        for machine in lab.machines.values():
            machine.run(_BLOCK, STEP_S)
            stack.callback(machine.run, _RELEASE, STEP_S)
            stack.callback(machine.run, _END, STEP_S)
        receiving = {h: _start(lab.machines[h], messages, "in", "") for h in lab.hosts}
        for host, machine in lab.machines.items():
            _wait_listening(machine, RING_PORT, receiving[host])
        sending = {
            h: _start(lab.machines[h], messages, "out", str(lab.machines[successor_of[h]].address))
            for h in lab.hosts
        }
        ends = _ends(lab, successor_of, [*receiving.values(), *sending.values()])
        for host, member in members.items():
            window = member.adopt(ends[host], STEP_S)
            if messages.packets_in_flight > window:
                raise RunError(
                    f"{messages.packets_in_flight} packets in flight: the job admits at most {window}"
                )
        for member in members.values():
            member.wait_added_up(STEP_S)
        for machine in lab.machines.values():
            machine.run(_RELEASE, STEP_S)
        rates = {}
        until = time.monotonic() + timeout_s
        for host, machine in lab.machines.items():
            left = until - time.monotonic()
            rates[host] = _rate(machine.result(sending[host], left, "ib_send_bw"), messages)
            machine.result(receiving[host], STEP_S, "ib_send_bw")
    lab.testbed.controller.wait_ended(name, STEP_S)
    return rates


def _start(machine: Machine, messages: Messages, direction: str, to: str) -> Future[CommandResult]:
    """Starts the program that sends to `to`, or receives. A file has its process id, which identifies its queue
    pair."""
    return machine.start(f"echo $$ > /tmp/ring.{direction}; exec {SEND} {messages.flags(RING_PORT)} {to}")


def _check_runs(program: Future[CommandResult]) -> None:
    """Raises RunError if the program ended early."""
    if program.done():
        ended = program.result()
        raise RunError(f"perftest ended early with exit code {ended.code}: {ended.output.strip()[-200:]}")


def _wait_listening(machine: Machine, port: int, program: Future[CommandResult]) -> None:
    deadline = time.monotonic() + STEP_S
    while f":{port:04X} " not in machine.run("cat /proc/net/tcp /proc/net/tcp6", STEP_S):
        _check_runs(program)
        if time.monotonic() > deadline:
            raise RunTimeoutError(f"perftest on {machine.host} does not listen")
        time.sleep(POLL_S)  # the server prints nothing when it listens


def _ends(
    lab: Lab, successor_of: Mapping[str, str], programs: Sequence[Future[CommandResult]]
) -> dict[str, AdoptedQueuePairs]:
    """Read from the kernel before anything is sent: the PSN that a queue pair expects is its peer's first PSN."""
    deadline = time.monotonic() + CONNECT_S
    while True:
        for program in programs:
            _check_runs(program)
        pairs = {h: _pairs(m) for h, m in lab.machines.items()}
        try:
            return {h: _ends_of(pairs[h], pairs[successor_of[h]]) for h in lab.hosts}
        except KeyError:
            if time.monotonic() > deadline:
                raise RunTimeoutError(f"ib_send_bw did not connect: {pairs}") from None
            time.sleep(POLL_S)  # the programs print nothing when they are connected


def _pairs(machine: Machine) -> dict[str, dict[str, str]]:
    """The kernel's attributes of the connected queue pairs, by direction `in` or `out`."""
    lines = machine.run("cat /tmp/ring.in; cat /tmp/ring.out; rdma resource show qp", STEP_S).splitlines()
    directions = {lines[0]: "in", lines[1]: "out"}
    found = {}
    for line in lines[2:]:
        known = dict(re.findall(r"([\w-]+) (\S+)", line.partition(" lqpn ")[1] + line.partition(" lqpn ")[2]))
        if known.get("pid") in directions and known.get("state") in _CONNECTED:
            found[directions[known["pid"]]] = known
    return found


def _ends_of(
    own: Mapping[str, Mapping[str, str]], successor: Mapping[str, Mapping[str, str]]
) -> AdoptedQueuePairs:
    out, peer = own["out"], successor["in"]
    if out["rqpn"] != peer["lqpn"] or peer["rqpn"] != out["lqpn"]:
        raise RunError(f"queue pairs do not match: {out}, {peer}")
    return AdoptedQueuePairs(
        send_qpn=int(out["lqpn"]), recv_qpn=int(own["in"]["lqpn"]), first_psn=int(peer["rq-psn"])
    )


def _rate(output: str, messages: Messages) -> float:
    for line in output.splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == str(messages.bytes):
            return float(words[3])
    raise RunError("ib_send_bw printed no rate")
