# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets per second, and per second of processor time, of a switch that adds up gradients.

Four workers, each on a veth link of its own, send chunks through one switch that is the root of their tree; every
chunk comes back to all four. The same load then meets simple_switch_grpc (where it is on PATH) with the same
program, and a plain AF_PACKET forwarder in C that only passes frames on. A packet is one that comes in; as many
leave. `pps_per_cpu_s` counts all threads of the switch's process, user and system, the kernel's work for it included.

    python benchmarks/switch_pps.py [--lanes 64 256] [--seconds 3] [--json FILE]        (as root)
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from pathlib import Path

import finsy as fy
import grpc
from finsy.proto import p4r, p4r_grpc
from google.protobuf import text_format
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from netfold.controller.switches import admission_table as admission
from netfold.controller.switches import delivery, groups, tree_routes
from netfold.controller.switches.entries import Codec, Entity
from netfold.traffic.packets.wire import FRAME_OVERHEAD_BYTES, Kind, Packet

ROOT = Path(__file__).parents[1]
WORKERS, WINDOW, SLOTS = 4, 128, 1024
TREE, EPOCH, UDP_PORT = 1, 1, 0xF001
TAG_AT, SLOT_AT = FRAME_OVERHEAD_BYTES + 4, FRAME_OVERHEAD_BYTES + 8
WARM_UP_S = 1.0
DEADLINE_S = 60
SWITCH_MAC = "02:00:00:00:00:fe"
COMMAND = "from netfold.cli.main import main; main()"


@dataclass(frozen=True)
class Row:
    """One measurement; ratios are of pps_per_cpu_s, and None where the peer was not measured."""

    target: str
    lanes: int
    pps: float
    cpu_s: float
    pps_per_cpu_s: float
    repeated: int
    ratio_to_bmv2: float | None = None
    ratio_to_forwarder: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lanes", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each measurement")
    parser.add_argument(
        "--rounds", type=int, default=1, help="measure all this often; the best of each counts"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("switch_pps: needs root for network namespaces and packet sockets")
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for lanes in options.lanes for row in measure(lanes, options, Path(folder))]
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def measure(lanes: int, options: argparse.Namespace, folder: Path) -> list[Row]:
    targets = {"softswitch": softswitch, "forwarder": forwarder}
    if shutil.which("simple_switch_grpc"):
        targets["bmv2"] = bmv2
    best: dict[str, Row] = {}
    for _ in range(options.rounds):
        for name, target in targets.items():
            with namespace(f"nfpps{os.getpid()}") as space, target(space, lanes, folder) as process:
                row = load(space, lanes, name, process, options.seconds, folder)
            if name not in best or row.pps_per_cpu_s > best[name].pps_per_cpu_s:
                best[name] = row
    return [with_ratios(row, best) for row in best.values()]


def with_ratios(row: Row, rows: dict[str, Row]) -> Row:
    ratios = {
        f"ratio_to_{peer}": row.pps_per_cpu_s / rows[peer].pps_per_cpu_s
        for peer in ("bmv2", "forwarder")
        if peer in rows
    }
    return Row(**(asdict(row) | ratios))


# --- the network ---


@contextmanager
def namespace(name: str) -> Iterator[str]:
    run("ip", "netns", "add", name)
    try:
        run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        for port in range(1, WORKERS + 1):
            run("ip", "-n", name, "link", "add", f"sw{port}", "type", "veth", "peer", "name", f"h{port}")
            for end in ("sw", "h"):
                run("ip", "-n", name, "link", "set", f"{end}{port}", "up")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, timeout=DEADLINE_S)


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, timeout=DEADLINE_S)


@contextmanager
def process(*command: object, **options: object) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen([str(part) for part in command], text=True, **options)  # type: ignore[call-overload]
    try:
        yield started
    finally:
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(10)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


def compiled(name: str, folder: Path) -> Path:
    target = folder / name
    if not target.exists():
        run("gcc", "-O2", "-march=native", "-o", target, Path(__file__).with_name(f"{name}.c"))
    return target


# --- the targets ---


@contextmanager
def forwarder(space: str, lanes: int, folder: Path) -> Iterator[subprocess.Popen[str]]:
    ports = [f"sw{port}" for port in range(1, WORKERS + 1)]
    command = ("ip", "netns", "exec", space, compiled("forwarder", folder), *ports)
    with process(*command, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n", "the forwarder did not start"
        yield started


def interfaces() -> list[str]:
    return [part for port in range(1, WORKERS + 1) for part in ("-i", f"{port}@sw{port}")]


@contextmanager
def softswitch(space: str, lanes: int, folder: Path) -> Iterator[subprocess.Popen[str]]:
    address = f"unix:{folder}/softswitch.sock"
    reader, writer = os.pipe()
    command = ["ip", "netns", "exec", space, sys.executable, "-c", COMMAND, "softswitch", *interfaces()]
    command += [
        "--grpc-server-addr",
        address,
        "--device-id",
        "1",
        "--ready-fd",
        str(writer),
        "--log-level",
        "warn",
    ]
    with os.fdopen(reader) as ready, process(*command, pass_fds=[writer]) as started:
        os.close(writer)
        assert ready.readline().startswith("ready"), "softswitch did not start"
        program(address, lanes)
        yield started


@contextmanager
def bmv2(space: str, lanes: int, folder: Path) -> Iterator[subprocess.Popen[str]]:
    address = f"unix:{folder}/bmv2.sock"
    command = [
        "ip",
        "netns",
        "exec",
        space,
        "simple_switch_grpc",
        "--no-p4",
        "--device-id",
        "1",
        *interfaces(),
    ]
    command += ["--", "--grpc-server-addr", address]
    with process(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        program(address, lanes)
        yield started


def program(address: str, lanes: int) -> None:
    """Pushes the program and makes the switch the root of a tree of four children."""
    stem = ROOT / "p4src" / "compiled" / f"netfold-v1model-{lanes}"
    config = p4r.ForwardingPipelineConfig(p4_device_config=stem.with_name(stem.name + ".json").read_bytes())
    text_format.Parse(stem.with_name(stem.name + ".p4info.txtpb").read_text(), config.p4info)
    schema = fy.P4Schema(config.p4info)
    codec = Codec(schema)
    updates = [
        p4r.Update(type=p4r.Update.INSERT, entity=codec.encode(entity).encode(schema))
        for entity in entities()
    ]
    options = [("grpc.max_send_message_length", -1)]
    with ExitStack() as stack:
        channel = stack.enter_context(grpc.insecure_channel(address, options=options))
        grpc.channel_ready_future(channel).result(timeout=DEADLINE_S)
        stub = p4r_grpc.P4RuntimeStub(channel)
        election = p4r.Uint128(low=1)
        hello = p4r.StreamMessageRequest(
            arbitration=p4r.MasterArbitrationUpdate(device_id=1, election_id=election)
        )
        stream = stub.StreamChannel(endless(hello))
        stack.callback(stream.cancel)
        next(stream)
        push = p4r.SetForwardingPipelineConfigRequest
        stub.SetForwardingPipelineConfig(
            push(device_id=1, election_id=election, action=push.VERIFY_AND_COMMIT, config=config),
            timeout=DEADLINE_S,
        )
        for update in updates:
            stub.Write(
                p4r.WriteRequest(device_id=1, election_id=election, updates=[update]), timeout=DEADLINE_S
            )


def endless(first: p4r.StreamMessageRequest) -> Iterator[p4r.StreamMessageRequest]:
    yield first
    threading.Event().wait()


def entities() -> Iterator[Entity]:
    """A tree whose root this switch is, with a worker behind each port."""
    ports = range(1, WORKERS + 1)
    for port in ports:
        sender = admission.Sender(port, TREE, port - 1, EPOCH, SLOTS)
        full = (1 << WORKERS) - 1
        yield from admission.added_up(sender, root=True, bit=port - 1, full=full, base=0)
        yield delivery.to_host(port, SWITCH_MAC, mac(port), IPv4Address(address(port)))
    yield groups.down(TREE, ports)
    yield tree_routes.downlink(TREE, TREE)


def mac(port: int) -> str:
    return f"02:00:00:00:00:{port:02x}"


def address(port: int) -> str:
    return f"10.0.0.{port}"


# --- the load ---


def load(
    space: str, lanes: int, name: str, target: subprocess.Popen[str], seconds: float, folder: Path
) -> Row:
    numbers = (WINDOW, SLOTS, TAG_AT, SLOT_AT, WARM_UP_S, seconds)
    ports = [f"h{port}" for port in range(1, WORKERS + 1)]
    command = ("ip", "netns", "exec", space, compiled("workers", folder), *numbers, *ports)
    frames = [template(port, lanes) for port in range(1, WORKERS + 1)]
    with process(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as workers:
        assert workers.stdin is not None
        assert workers.stdout is not None
        workers.stdin.buffer.write(b"".join(struct.pack("=I", len(frame)) + frame for frame in frames))
        workers.stdin.close()
        assert workers.stdout.readline() == "begin\n", "the workers did not start"
        before = cpu_seconds(target.pid)
        end = workers.stdout.readline().split()
        used = cpu_seconds(target.pid) - before
    packets = int(end[1]) * WORKERS
    if not packets:
        sys.exit(f"switch_pps: {name} with {lanes} lanes completed no chunk")
    return Row(name, lanes, packets / float(end[2]), used, packets / used, int(end[3]))


def template(port: int, lanes: int) -> bytes:
    header = Packet(Kind.GRADIENT, TREE, EPOCH, 0, 0, port - 1, tuple(range(-lanes // 2, lanes - lanes // 2)))
    ip = IP(src=address(port), dst="10.0.0.254") / UDP(sport=UDP_PORT, dport=UDP_PORT, chksum=0)
    return bytes(Ether(src=mac(port), dst=SWITCH_MAC) / ip / Raw(header.pack()))


def cpu_seconds(pid: int) -> float:
    """Time on a processor of all threads of a process so far."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def print_table(rows: list[Row]) -> None:
    print(
        f"{'target':<12}{'lanes':>6}{'pps':>12}{'cpu_s':>9}{'pps_per_cpu_s':>15}{'to bmv2':>10}{'to forwarder':>14}"
    )
    for row in rows:
        ratios = [f"{r:.2f}" if r is not None else "-" for r in (row.ratio_to_bmv2, row.ratio_to_forwarder)]
        print(
            f"{row.target:<12}{row.lanes:>6}{row.pps:>12,.0f}{row.cpu_s:>9.2f}{row.pps_per_cpu_s:>15,.0f}"
            f"{ratios[0]:>10}{ratios[1]:>14}"
        )


if __name__ == "__main__":
    main()
