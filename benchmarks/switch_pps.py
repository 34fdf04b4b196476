# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets per second, and per second of processor time, of a switch; and how long a packet takes.

Four hosts, each on a veth link of its own, send through one switch: chunks that it adds up (netfold, by lanes; float,
of float32), or the shortest frames that it routes. The same load then meets simple_switch_grpc (where BMv2's is on
PATH) with the same program, and two plain forwarders in C that only pass frames on, by AF_PACKET and by AF_XDP. A
packet is one that comes
in; as many leave. `pps_per_cpu_s` counts all threads of the switch's process, user and system, the kernel's work for it
included. `latency_us` is measured with one chunk in flight: from the hosts' first frame until each has its answer,
their own sockets included. Every round measures all targets one after another; the best of each counts.

    python benchmarks/switch_pps.py [--loads router netfold-64] [--seconds 3] [--rounds 3] [--json FILE]   (as root)
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
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import grpc
from finsy.proto import p4r, p4r_grpc

sys.path.insert(0, str(Path(__file__).parent))
from switch_loads import ROOT, SLOTS, WORKERS, Load, aggregation, roce, router

WINDOW = 128
WARM_UP_S = 1.0
DEADLINE_S = 60
COMMAND = "from netfold.cli.main import main; main()"
LOADS: dict[str, Callable[[], Load]] = {
    "router": router,
    "netfold-64": lambda: aggregation(64),
    "netfold-256": lambda: aggregation(256),
    "float-64": lambda: aggregation(64, floats=True),
    "roce-64": lambda: roce(64),
    "roce-256": lambda: roce(256),
}


@dataclass(frozen=True)
class Row:
    """One measurement; ratios are of pps_per_cpu_s, and None where the peer was not measured."""

    target: str
    load: str
    frame_bytes: int
    pps: float
    cpu_s: float
    pps_per_cpu_s: float
    latency_us: float
    repeated: int
    ratio_to_bmv2: float | None = None
    ratio_to_forwarder: float | None = None
    ratio_to_forwarder_xdp: float | None = None


@dataclass(frozen=True)
class Bmv2:
    """What was measured under the name of simple_switch_grpc."""

    version: str
    command: str
    logging_macros: bool
    """Are log statements compiled in? BMv2 is several times slower with them, whatever it logs."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loads", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument("--seconds", type=float, default=3.0, help="for each measurement")
    parser.add_argument("--rounds", type=int, default=1, help="measure all this often")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("switch_pps: needs root for network namespaces and packet sockets")
    with tempfile.TemporaryDirectory() as folder:
        peer = bmv2_here(Path(folder))
        rows = [row for name in options.loads for row in measure(LOADS[name](), peer, options, Path(folder))]
    print_table(rows)
    print(
        f"BMv2: {peer}" if peer else "BMv2: simple_switch_grpc is not on PATH, or is softswitch by that name"
    )
    if options.json:
        report = {"rows": [asdict(row) for row in rows], "bmv2": asdict(peer) if peer else None}
        options.json.write_text(json.dumps(report, indent=1) + "\n")


Target = Callable[[str, Load, Path], AbstractContextManager[subprocess.Popen[str]]]


def measure(load: Load, peer: Bmv2 | None, options: argparse.Namespace, folder: Path) -> list[Row]:
    targets: dict[str, Target] = {
        "softswitch": softswitch,
        "forwarder": forwarder,
        "forwarder_xdp": forwarder_xdp,
    }
    if peer is not None:
        targets["bmv2"] = bmv2
    best: dict[str, Row] = {}
    for _ in range(options.rounds):
        for name, target in targets.items():
            row = one_row(name, target, load, options.seconds, folder)
            least = min(row.latency_us, best[name].latency_us) if name in best else row.latency_us
            if name not in best or row.pps_per_cpu_s > best[name].pps_per_cpu_s:
                best[name] = row
            best[name] = replace(best[name], latency_us=least)
    return [with_ratios(row, best) for row in best.values()]


def with_ratios(row: Row, rows: dict[str, Row]) -> Row:
    ratios = {
        f"ratio_to_{peer}": row.pps_per_cpu_s / rows[peer].pps_per_cpu_s
        for peer in ("bmv2", "forwarder", "forwarder_xdp")
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
        xsk = ROOT / "softswitch" / "engine" / "xsk.c"
        run("gcc", "-O2", "-march=native", "-o", target, Path(__file__).with_name(f"{name}.c"), xsk)
    return target


# --- the targets ---


@contextmanager
def forwarder(space: str, load: Load, folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    ports = [f"sw{port}" for port in range(1, WORKERS + 1)]
    command = ("ip", "netns", "exec", space, compiled("forwarder", folder), *options, *ports)
    with process(*command, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n", "the forwarder did not start"
        yield started


def forwarder_xdp(space: str, load: Load, folder: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    return forwarder(space, load, folder, "-x")


def interfaces() -> list[str]:
    return [part for port in range(1, WORKERS + 1) for part in ("-i", f"{port}@sw{port}")]


@contextmanager
def softswitch(space: str, load: Load, folder: Path) -> Iterator[subprocess.Popen[str]]:
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
        program(address, load)
        yield started


def bmv2_command(address: str) -> list[str]:
    command = ["simple_switch_grpc", "--no-p4", "--device-id", "1", *interfaces()]
    return [*command, "--", "--grpc-server-addr", address]


def bmv2_here(folder: Path) -> Bmv2 | None:
    """The BMv2 on PATH; None when there is none, or it is a link to softswitch."""
    found = shutil.which("simple_switch_grpc")
    if found is None or Path(found).resolve().name == "netfold":
        return None
    said = subprocess.run(
        [found, "--version"], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    # It says at its start whether log statements were left out of the build, if it is asked to log.
    wrong = subprocess.run(
        [found, "--no-p4", "--log-file", folder / "bmv2", "--log-level", "trace", "--", "--cpu-port", "0"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    macros = "disabled logging macros" not in wrong.stdout + wrong.stderr
    return Bmv2(said.stdout.strip(), " ".join(bmv2_command("ADDRESS")), macros)


@contextmanager
def bmv2(space: str, load: Load, folder: Path) -> Iterator[subprocess.Popen[str]]:
    address = f"unix:{folder}/bmv2.sock"
    command = ["ip", "netns", "exec", space, *bmv2_command(address)]
    with process(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        program(address, load)
        yield started


def program(address: str, load: Load) -> None:
    """Pushes the program and its entries."""
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
            push(device_id=1, election_id=election, action=push.VERIFY_AND_COMMIT, config=load.config),
            timeout=DEADLINE_S,
        )
        for update in load.updates:
            stub.Write(
                p4r.WriteRequest(device_id=1, election_id=election, updates=[update]), timeout=DEADLINE_S
            )


def endless(first: p4r.StreamMessageRequest) -> Iterator[p4r.StreamMessageRequest]:
    yield first
    threading.Event().wait()


# --- the load ---


def one_row(name: str, target: Target, load: Load, seconds: float, folder: Path) -> Row:
    """Each of the two runs has a switch of its own: a second run's chunks would be old to the first's slots."""
    chunks, elapsed, used, repeated = drive(target, load, WINDOW, seconds, folder)
    alone, alone_elapsed, _, _ = drive(target, load, 1, min(seconds, 1.0), folder)
    if not chunks or not alone:
        sys.exit(f"switch_pps: {name} completed no chunk of {load.name}")
    packets, latency_us = chunks * WORKERS, alone_elapsed / alone * 1e6
    size = len(load.frames[0])
    return Row(name, load.name, size, packets / elapsed, used, packets / used, latency_us, repeated)


def drive(
    target: Target, load: Load, window: int, seconds: float, folder: Path
) -> tuple[int, float, float, int]:
    """Chunks done, seconds they took, the target's processor time, chunks sent again."""
    with namespace(f"nfpps{os.getpid()}") as space, target(space, load, folder) as running:
        return _drive(space, load, window, seconds, running, folder)


def _drive(
    space: str, load: Load, window: int, seconds: float, target: subprocess.Popen[str], folder: Path
) -> tuple[int, float, float, int]:
    numbers = (window, SLOTS, load.tag_at, load.slot_at, WARM_UP_S, seconds)
    ports = [f"h{port}" for port in range(1, WORKERS + 1)]
    command = ("ip", "netns", "exec", space, compiled("workers", folder), *numbers, *ports)
    with process(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as workers:
        assert workers.stdin is not None
        assert workers.stdout is not None
        workers.stdin.buffer.write(b"".join(struct.pack("=I", len(frame)) + frame for frame in load.frames))
        workers.stdin.close()
        assert workers.stdout.readline() == "begin\n", "the workers did not start"
        before = cpu_seconds(target.pid)
        end = workers.stdout.readline().split()
        used = cpu_seconds(target.pid) - before
    return int(end[1]), float(end[2]), used, int(end[3])


def cpu_seconds(pid: int) -> float:
    """Time on a processor of all threads of a process so far."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def print_table(rows: list[Row]) -> None:
    print(
        f"{'target':<14}{'load':<12}{'bytes':>6}{'pps':>10}{'cpu_s':>7}{'pps_per_cpu_s':>14}{'latency_us':>11}"
        f"{'to bmv2':>9}{'to fwd':>8}{'to xdp':>8}"
    )
    for row in rows:
        peers = (row.ratio_to_bmv2, row.ratio_to_forwarder, row.ratio_to_forwarder_xdp)
        ratios = [f"{r:.2f}" if r is not None else "-" for r in peers]
        print(
            f"{row.target:<14}{row.load:<12}{row.frame_bytes:>6}{row.pps:>10,.0f}{row.cpu_s:>7.2f}"
            f"{row.pps_per_cpu_s:>14,.0f}{row.latency_us:>11.1f}{ratios[0]:>9}{ratios[1]:>8}{ratios[2]:>8}"
        )


if __name__ == "__main__":
    main()
