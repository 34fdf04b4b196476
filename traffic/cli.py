# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold host worker`, `ps`, `ring`, `background`: processes that run on hosts."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netfold.protocol.environment import Variable
from netfold.protocol.option_groups import expand_groups
from netfold.protocol.options import ControllerOptions, reaches_controller
from netfold.traffic.workloads import HIDDEN_UNITS

# Workers of the demonstration share a small machine; their small matrices gain nothing from more threads.
# Set before numpy is imported, which reads it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from netfold.traffic.membership.assignment import Assignment
    from netfold.traffic.membership.base import Membership
    from netfold.traffic.numerics import Scheme
    from netfold.traffic.workloads.benchmark import Result

worker = typer.Typer()
ps = typer.Typer()
ring = typer.Typer()
background = typer.Typer()

Job = Annotated[str, typer.Option(help="Name of the job, as submitted.")]
Host = Annotated[
    str,
    typer.Option(
        envvar=Variable.HOST,
        help="Name of this host in the fabric; default: the host with an address of this machine.",
    ),
]
AssignmentFile = Annotated[
    Path | None,
    typer.Option("--assignment", help="JSON file with the member's assignment, in place of a controller."),
]
Out = Annotated[Path | None, typer.Option(help="File for the result (JSON); default: standard output.")]
Timeout = Annotated[
    float, typer.Option(min=0.01, help="Timeout of an all-reduce and of joining, in seconds.")
]
Local = Annotated[str, typer.Option(help="IPv4 address to bind.")]


@dataclass(frozen=True)
class WorkloadOptions:
    """The workload of a worker, and the check of its result."""

    PANEL = "Workload"

    workload: Annotated[
        str,
        typer.Option(
            help="digits: train a perceptron on handwritten digits. sizes: all-reduce arrays of --sizes. A model's "
            "name (alexnet, vgg16, resnet50, bert-large ...): gradients of its size, times --model-scale.",
        ),
    ] = "digits"
    epochs: Annotated[
        int, typer.Option(min=1, help="digits: training epochs, passes over the training images.")
    ] = 10
    hidden: Annotated[int, typer.Option(min=1, help="digits: hidden units of the perceptron.")] = HIDDEN_UNITS
    model_scale: Annotated[
        float,
        typer.Option(min=1e-9, help="Models: factor on the size of each tensor."),
    ] = 0.01
    iterations: Annotated[int, typer.Option(min=1, help="Models and sizes: iterations.")] = 5
    sizes: Annotated[
        str,
        typer.Option(help="sizes: bytes of the arrays, as in 4K,1M,16M."),
    ] = "64K,1M"
    dtype: Annotated[
        str,
        typer.Option(help="sizes: float32, float16, bfloat16, float64, int32 or int64."),
    ] = "float32"
    volume: Annotated[
        str,
        typer.Option(
            help="sizes: minimum bytes of all calls of a size together; at most 200 calls.",
        ),
    ] = "1"
    warmup: Annotated[int, typer.Option(min=0, help="sizes: untimed calls before each size.")] = 1
    check: Annotated[
        bool,
        typer.Option(help="Compare every sum with the exact one, element by element."),
    ] = True
    progress: Annotated[
        Path | None,
        typer.Option(
            help="File to append progress to, one JSON object a line; 'at' is the monotonic clock in seconds.",
        ),
    ] = None

    def run(
        self, all_reduce: Callable[[Any], None], rank: int, workers: int, scheme: Scheme | None
    ) -> Result:
        """Checks the options. Raises ValueError for one out of its values."""
        from netfold.traffic.numerics import DTYPES
        from netfold.traffic.workloads.benchmark import BenchmarkRun

        run = BenchmarkRun(
            all_reduce, rank, workers, scheme, self.check, lambda report: self._note(rank, report)
        )
        if self.workload == "digits":
            return run.digits(self.epochs, self.hidden)
        if self.workload == "sizes":
            if self.dtype not in (known := [str(one) for one in DTYPES]):
                raise ValueError(f"--dtype is '{self.dtype}'; expected one of {', '.join(known)}")
            arrays = [_bytes(size) for size in self.sizes.split(",")]
            return run.sizes(arrays, self.iterations, self.warmup, self.dtype, _bytes(self.volume))
        return run.model(self.workload, self.model_scale, self.iterations)

    def _note(self, rank: int, report: dict[str, Any]) -> None:
        if self.progress is not None:
            with self.progress.open("a") as file:
                file.write(json.dumps({"rank": rank, "at": time.monotonic(), **report}) + "\n")


@worker.command("worker")
@reaches_controller
def run_worker(
    where: ControllerOptions,
    workload: WorkloadOptions,
    job: Job = "",
    host: Host = "",
    assignment: AssignmentFile = None,
    fixed_bits: Annotated[
        int | None, typer.Option(help="Scale all floats by 2^BITS, in place of the job's numerics.")
    ] = None,
    congestion: Annotated[
        str, typer.Option(help="Congestion window: panama, atp, or fixed (always the slot window).")
    ] = "panama",
    local: Local = "0.0.0.0",
    timeout: Timeout = 60.0,
    out: Out = None,
) -> None:
    """Run a worker of a job on this host.

    It joins the job at the controller, waits until the job is installed, runs the workload with
    all-reduces through the network, writes a JSON result, and leaves. Exit code 0: success; 1: the job
    failed; one line on standard error gives the reason.
    """
    from netfold.traffic.congestion import Congestion
    from netfold.traffic.packets.host_link import HostLink
    from netfold.traffic.worker.worker import Worker

    with _plain_errors():
        scheme = _scheme(fixed_bits)
        members, host = _membership(where, job, host, assignment)
        link = HostLink.from_environment()
        with Worker(members, local, scheme, Congestion(congestion), link) as one:
            mine = members.wait(timeout)

            def reduce(array: Any) -> None:
                one.all_reduce(array, timeout)

            measured = workload.run(reduce, mine.rank, mine.workers, scheme or mine.numerics)
            measured.retransmits, measured.probes = one.retransmits, one.probes
            measured.flows = one.flows()
            measured.restarts, measured.reencoded_chunks = one.stats.restarts, one.stats.reencoded_chunks
            measured.socket_errors = one.stats.socket_errors()
        _write(out, {"host": host, "job": mine.job, "transport": "netfold", **measured.to_dict()})


@ring.command("ring")
@expand_groups
def run_ring(
    workload: WorkloadOptions,
    hosts: Annotated[
        str, typer.Option(help="IPv4 addresses of all workers, in the order of the ring: A,B,C.")
    ],
    rank: Annotated[int, typer.Option(min=0, help="Rank of this worker in the ring.")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port of all workers.")] = 29500,
    gloo: Annotated[bool, typer.Option("--gloo", help="Use PyTorch's Gloo, which needs torch.")] = False,
    timeout: Timeout = 60.0,
    out: Out = None,
) -> None:
    """Run a worker of the peer: ring all-reduce over TCP, through the same switches, without aggregation.

    All workers of the ring run this with the same options and their own --rank. Writes the same JSON as
    `netfold host worker`.
    """
    from netfold.traffic.workloads.ring import GlooWorker, RingWorker

    with _plain_errors():
        addresses = [address.strip() for address in hosts.split(",")]
        if rank >= len(addresses):
            raise ValueError(f"--rank is {rank}, but --hosts names {len(addresses)}; ranks start at 0")
        with (GlooWorker if gloo else RingWorker)(addresses, rank, port, timeout) as one:
            measured = workload.run(lambda array: one.all_reduce(array, timeout), rank, len(addresses), None)
        _write(out, {"host": addresses[rank], "transport": "gloo" if gloo else "ring", **measured.to_dict()})


@ps.command("ps")
@reaches_controller
def run_server(
    where: ControllerOptions,
    job: Job = "",
    host: Host = "",
    assignment: AssignmentFile = None,
    reply_to: Annotated[
        str,
        typer.Option(
            help="Without switches: IPv4 addresses of the workers, A,B,C, to each of which results are sent."
        ),
    ] = "",
    local: Local = "0.0.0.0",
    threads: Annotated[
        int, typer.Option(min=1, max=64, help="Threads that divide the slots, each with its own socket.")
    ] = 1,
    timeout: Timeout = 60.0,
    out: Out = None,
) -> None:
    """Run a parameter server of a job on this host: the root of the trees that the plan gives it.

    It joins the job at the controller and serves until the job ends or SIGTERM; then it writes the number
    of packets by verdict as JSON. Exit code 0: all workers left, or SIGTERM; 1: the job failed.
    """
    from netfold.traffic.packets.host_link import HostLink
    from netfold.traffic.packets.transport import Address
    from netfold.traffic.server.process import serve

    with _plain_errors():
        members, host = _membership(where, job, host, assignment)
        mine = members.wait(timeout)
        workers = [Address(a.strip(), mine.udp_port) for a in reply_to.split(",") if a.strip()]
        link = HostLink.from_environment()
        served = serve(members, local, workers, link, threads)
        _write(out, {"host": host, "job": mine.job, **asdict(served)})


@background.command("background")
def run_background(
    peer: Annotated[str, typer.Argument(help="IPv4 address to send to, or to bind with --sink.")],
    port: Annotated[int, typer.Option(min=1, max=65535)] = 5001,
    sink: Annotated[bool, typer.Option("--sink", help="Receive instead of sending.")] = False,
    protocol: Annotated[str, typer.Option(help="udp or tcp.")] = "udp",
    rate_mbps: Annotated[float, typer.Option(min=0.0, help="Rate; 0: unlimited.")] = 10.0,
    seconds: Annotated[float, typer.Option(min=0.01, help="Duration in seconds.")] = 10.0,
    size: Annotated[
        int, typer.Option(min=1, max=65000, help="Payload of a datagram or write, in bytes.")
    ] = 1200,
    out: Out = None,
) -> None:
    """Send or receive background traffic."""
    from netfold.traffic.workloads.background import Protocol, send_flow, sink_flow

    with _plain_errors():
        kind = Protocol(protocol)
        measured = (
            sink_flow(peer, port, kind, seconds)
            if sink
            else send_flow(peer, port, kind, rate_mbps, seconds, size)
        )
        _write(out, {"peer": peer, "port": port, "protocol": protocol, "sink": sink, **measured})


def _bytes(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number, factor = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
    if not number.strip().isdigit() or int(number) == 0:
        raise ValueError(f"--sizes has '{text}'; expected integers with an optional K, M or G, as in 4K,1M")
    return int(number) * factor


def _scheme(fixed_bits: int | None) -> Scheme | None:
    """Reads the scheme from the options. None: the scheme of the job's file."""
    from netfold.traffic.numerics import Fixed

    return None if fixed_bits is None else Fixed(fixed_bits)


def _membership(where: ControllerOptions, job: str, host: str, file: Path | None) -> tuple[Membership, str]:
    """Joins the job. Returns the membership, and the host's name."""
    if file is not None:
        from netfold.traffic.membership.base import StaticMembership

        return StaticMembership(_read_assignment(file)), host
    if not job:
        raise ValueError("--job is needed to join at the controller (or --assignment FILE without one)")
    from netfold.traffic.membership.host import own_host
    from netfold.traffic.membership.membership import ControllerMembership

    connection = where.connection()
    name = host or own_host(connection).name
    return ControllerMembership(connection, job, name), name


def _read_assignment(file: Path) -> Assignment:
    from google.protobuf import json_format

    from netfold.protocol import netfold_pb2 as pb
    from netfold.traffic.membership.membership import from_proto

    try:
        return from_proto(json_format.Parse(file.read_text(), pb.Assignment()))
    except json_format.ParseError as error:
        raise ValueError(
            f"{file}: {error}; expected an Assignment of protocol/netfold.proto as JSON"
        ) from None


def _write(out: Path | None, report: dict[str, Any]) -> None:
    text = json.dumps(report)
    if out is None:
        typer.echo(text)
        return
    part = out.with_name(f".{out.name}.part")
    part.write_text(text + "\n")
    part.replace(out)  # readers never see a part of it


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Prints an expected error as one line on standard error and exits with code 1."""
    from netfold.protocol.connection import ConnectError
    from netfold.traffic.errors import TrafficError

    try:
        yield
    except (TrafficError, ConnectError, OSError, ValueError, ModuleNotFoundError) as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)
