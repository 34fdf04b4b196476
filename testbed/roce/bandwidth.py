# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""perftest's `ib_send_bw`, as Debian ships it, on machines of a lab: between two of them, or as the workers of a job.

As workers they send in the job's ring, and know nothing of it. Their connections are admitted while the machines hold
back what they send (`tc`), so that the first packet which leaves is one that is added up.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass

from netfold.api.connection import Connection
from netfold.controller.jobs.rings import successors
from netfold.testbed.errors import RunError, RunTimeout
from netfold.testbed.roce.lab import Lab
from netfold.testbed.roce.machine import Answer, Machine
from netfold.traffic.roce.adopted import Adoption, Ends

PORT, RING_PORT = 18515, 18516
PATH_MTU = 1024
PLAIN_BYTES, PLAIN_MESSAGES = 16384, 200
STEP_S, CONNECT_S, LOOK_S = 60.0, 180.0, 0.2
"""`CONNECT_S`: all programs start at once, in machines that are interpreted."""

# `trap` takes a packet away in silence; `drop` would tell the device, which tries again at once and without end.
_HOLD = (
    "/bin/tc qdisc add dev eth0 clsact && /bin/tc filter add dev eth0 egress protocol ip u32 "
    "match ip protocol 17 0xff match ip dport 4791 0xffff action trap"
)
_END = "killall ib_send_bw 2> /dev/null || true"
_CONNECTED = ("RTR", "RTS")  # the one that only receives stays in the first
_LET_GO = "/bin/tc qdisc del dev eth0 clsact || true"


@dataclass(frozen=True)
class Messages:
    """`under_way`: so many are sent before the first is acknowledged. What jobs get by themselves has room for two."""

    bytes: int = PLAIN_BYTES
    count: int = PLAIN_MESSAGES
    under_way: int = 2

    @property
    def packets_under_way(self) -> int:
        return self.under_way * self.bytes // PATH_MTU

    def flags(self, port: int) -> str:
        return f"-d rxe0 -x 1 -m {PATH_MTU} -s {self.bytes} -n {self.count} -t {self.under_way} -Q 1 -u 16 -p {port} -F"


SEND, WRITE = "ib_send_bw -e", "ib_write_bw"
"""`-e`: it waits for events, as programs that spin starve the switches; only `ib_write_bw` cannot."""

PLAIN = Messages(under_way=16)


def plain_connection(lab: Lab, program: str = SEND, messages: Messages = PLAIN) -> float:
    """MB/s of a plain connection across the fabric. Raises RunError if it breaks."""
    first, last = (lab.machines[h] for h in (lab.hosts[0], lab.hosts[-1]))
    server = last.start(f"{program} {messages.flags(PORT)}")
    _wait_listening(last, PORT, server)
    rate = _rate(first.run(f"{program} {messages.flags(PORT)} {last.address}", 300.0), messages)
    last.result(server, STEP_S, program)
    return rate


def ring(lab: Lab, name: str, messages: Messages, timeout_s: float) -> dict[str, float]:
    """All machines' `ib_send_bw` as the workers of a job that was submitted; MB/s by machine. Raises RunError."""
    following = successors(lab.deployment.fabric, lab.hosts)
    with ExitStack() as stack:
        where = Connection(lab.deployment.service.address)
        members = {h: stack.enter_context(Adoption(where, name, h)) for h in lab.hosts}
        for machine in lab.machines.values():
            machine.run(_HOLD, STEP_S)
            stack.callback(machine.run, _LET_GO, STEP_S)
            stack.callback(machine.run, _END, STEP_S)
        receiving = {h: _start(lab.machines[h], messages, "in", "") for h in lab.hosts}
        for host, machine in lab.machines.items():
            _wait_listening(machine, RING_PORT, receiving[host])
        sending = {
            h: _start(lab.machines[h], messages, "out", str(lab.machines[following[h]].address))
            for h in lab.hosts
        }
        ends = _ends(lab, following, [*receiving.values(), *sending.values()])
        for host, member in members.items():
            window = member.adopt(ends[host], STEP_S)
            if messages.packets_under_way > window:
                raise RunError(
                    f"{messages.packets_under_way} packets under way are too many for the job: {window} at most"
                )
        for member in members.values():
            member.wait_added_up(STEP_S)
        for machine in lab.machines.values():
            machine.run(_LET_GO, STEP_S)
        rates = {}
        until = time.monotonic() + timeout_s
        for host, machine in lab.machines.items():
            left = until - time.monotonic()
            rates[host] = _rate(machine.result(sending[host], left, "ib_send_bw"), messages)
            machine.result(receiving[host], STEP_S, "ib_send_bw")
    lab.deployment.service.wait_over(name, STEP_S)
    return rates


def _start(machine: Machine, messages: Messages, way: str, to: str) -> Future[Answer]:
    """The program that sends to `to`, or receives. Its number goes into a file: that names its queue pair."""
    return machine.start(f"echo $$ > /tmp/ring.{way}; exec {SEND} {messages.flags(RING_PORT)} {to}")


def _check_runs(program: Future[Answer]) -> None:
    """Raises RunError if it has ended before it was let go."""
    if program.done():
        ended = program.result()
        raise RunError(f"perftest's program ended with {ended.code} too early: {ended.output.strip()[-200:]}")


def _wait_listening(machine: Machine, port: int, program: Future[Answer]) -> None:
    deadline = time.monotonic() + STEP_S
    while f":{port:04X} " not in machine.run("cat /proc/net/tcp /proc/net/tcp6", STEP_S):
        _check_runs(program)
        if time.monotonic() > deadline:
            raise RunTimeout(f"perftest's program on {machine.host} does not listen")
        time.sleep(LOOK_S)  # the server in the machine says nothing when it listens


def _ends(lab: Lab, following: Mapping[str, str], programs: Sequence[Future[Answer]]) -> dict[str, Ends]:
    """As the kernel tells them, while nothing was sent: what a queue pair expects is the first PSN of its peer."""
    deadline = time.monotonic() + CONNECT_S
    while True:
        for program in programs:
            _check_runs(program)
        pairs = {h: _pairs(m) for h, m in lab.machines.items()}
        try:
            return {h: _ends_of(pairs[h], pairs[following[h]]) for h in lab.hosts}
        except KeyError:
            if time.monotonic() > deadline:
                raise RunTimeout(f"ib_send_bw did not connect: {pairs}") from None
            time.sleep(LOOK_S)  # the programs say nothing when they are connected


def _pairs(machine: Machine) -> dict[str, dict[str, str]]:
    """By way, `in` or `out`, what the kernel says of the program's queue pair, once it is connected."""
    told = machine.run("cat /tmp/ring.in; cat /tmp/ring.out; rdma resource show qp", STEP_S).splitlines()
    ways = {told[0]: "in", told[1]: "out"}
    found = {}
    for line in told[2:]:
        known = dict(re.findall(r"([\w-]+) (\S+)", line.partition(" lqpn ")[1] + line.partition(" lqpn ")[2]))
        if known.get("pid") in ways and known.get("state") in _CONNECTED:
            found[ways[known["pid"]]] = known
    return found


def _ends_of(own: Mapping[str, Mapping[str, str]], next_one: Mapping[str, Mapping[str, str]]) -> Ends:
    out, peer = own["out"], next_one["in"]
    if out["rqpn"] != peer["lqpn"] or peer["rqpn"] != out["lqpn"]:
        raise RunError(f"queue pairs that are not each other's: {out}, {peer}")
    return Ends(out_qpn=int(out["lqpn"]), in_qpn=int(own["in"]["lqpn"]), first_psn=int(peer["rq-psn"]))


def _rate(output: str, messages: Messages) -> float:
    for line in output.splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == str(messages.bytes):
            return float(words[3])
    raise RunError("ib_send_bw did not say how fast it was")
