# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold worker`, `ps`, `ring`, `send`, `background`: the processes that run inside of hosts."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netfold.api.options import Where, reaches_controller
from netfold.traffic.workloads import HIDDEN_UNITS

# Eight workers share a small machine in the demonstration; matrices of their size gain nothing from more threads.
# Set before numpy is imported, which reads it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from netfold.traffic.membership.assignment import Assignment
    from netfold.traffic.membership.part import Membership
    from netfold.traffic.numerics import Scheme
    from netfold.traffic.workloads.benchmark import Result, Run

worker = typer.Typer(no_args_is_help=True, help="Run a worker of a job on this host.")
ps = typer.Typer(no_args_is_help=True, help="Run a parameter server of a job on this host.")
ring = typer.Typer(no_args_is_help=True, help="Run a worker of the peer: ring all-reduce over TCP.")
send = typer.Typer(no_args_is_help=True, help="Craft gradient packets by hand, with scapy.")
background = typer.Typer(no_args_is_help=True, help="Send or take background traffic.")

Job = Annotated[str, typer.Option(help="The job's name, as submitted.")]
Host = Annotated[
    str,
    typer.Option(
        envvar="NETFOLD_HOST",
        help="This host's name in the fabric; default: the one that has an address of this machine.",
    ),
]
AssignmentFile = Annotated[
    Path | None,
    typer.Option("--assignment", help="Instead of a controller: a JSON file with the member's assignment."),
]
Workload = Annotated[
    str,
    typer.Option(
        help="digits: train a perceptron on handwritten digits. sizes: all-reduce arrays of --bytes. "
        "A model's name (alexnet, vgg16, resnet50, bert-large ...): gradients of its size, times --scale."
    ),
]
Epochs = Annotated[int, typer.Option(min=1, help="digits: passes over the training images.")]
Hidden = Annotated[int, typer.Option(min=1, help="digits: the perceptron's hidden units.")]
Scale = Annotated[float, typer.Option(min=1e-9, help="Model workloads: a factor on the size of each tensor.")]
Iterations = Annotated[int, typer.Option(min=1, help="Model workloads and sizes: how often.")]
Volume = Annotated[
    str, typer.Option(help="sizes: more calls of small arrays, until they make so many bytes; at most 200.")
]
Warmup = Annotated[int, typer.Option(min=0, help="sizes: untimed calls before, for each size.")]
Sizes = Annotated[str, typer.Option("--bytes", help="sizes: bytes of the arrays, as in 4K,1M,16M.")]
Dtype = Annotated[str, typer.Option(help="sizes: float32, float16, bfloat16, float64, int32 or int64.")]
Check = Annotated[bool, typer.Option(help="Compare every sum with the exact one, element by element.")]
Out = Annotated[
    Path | None, typer.Option(help="Write the result, JSON, to this file; else to standard output.")
]
ProgressFile = Annotated[
    Path | None,
    typer.Option("--progress", help="Append progress, one JSON object a line; 'at' is the monotonic clock."),
]
Timeout = Annotated[
    float, typer.Option(min=0.01, help="Seconds for one all-reduce, or for the job to start.")
]
Local = Annotated[str, typer.Option(help="The IPv4 address to bind.")]


@worker.command("worker")
@reaches_controller
def run_worker(
    where: Where,
    job: Job = "",
    host: Host = "",
    assignment: AssignmentFile = None,
    workload: Workload = "digits",
    epochs: Epochs = 10,
    hidden: Hidden = HIDDEN_UNITS,
    scale: Scale = 0.01,
    iterations: Iterations = 5,
    volume: Volume = "1",
    warmup: Warmup = 1,
    sizes: Sizes = "64K,1M",
    dtype: Dtype = "float32",
    check: Check = True,
    fixed_bits: Annotated[
        int | None, typer.Option(help="Scale all floats by 2^BITS, whatever the job's numerics say.")
    ] = None,
    congestion: Annotated[
        str, typer.Option(help="panama, atp, or fixed (always the whole window).")
    ] = "panama",
    local: Local = "0.0.0.0",
    timeout: Timeout = 60.0,
    out: Out = None,
    progress: ProgressFile = None,
) -> None:
    """Run a worker of a job on this host.

    It joins the job at the controller, waits until the job is installed, runs the workload with
    all-reduces through the network, writes a JSON result, and leaves. Exit code 0: done; 1: the job
    failed, in one line that says why.
    """
    from netfold.traffic.congestion import Congestion
    from netfold.traffic.worker.worker import Worker

    with _plain_errors():
        scheme = _scheme(fixed_bits)
        members, host = _membership(where, job, host, assignment)
        with Worker(members, local, scheme, Congestion(congestion)) as one:
            mine = members.wait(timeout)

            def reduce(array: Any) -> None:
                one.all_reduce(array, timeout)

            measured = _measure(
                reduce,
                mine.rank,
                mine.workers,
                scheme or mine.numerics,
                check,
                progress,
                lambda run: _work(
                    run, workload, epochs, hidden, scale, iterations, volume, warmup, sizes, dtype
                ),
            )
            measured.retransmits = one.retransmits
            measured.flows = one.flows()
            measured.restarts, measured.overflows = one.stats.restarts, one.stats.overflows
        _write(out, {"host": host, "job": mine.job, "transport": "netfold", **measured.to_dict()})


@ring.command("ring")
def run_ring(
    hosts: Annotated[
        str, typer.Option(help="IPv4 addresses of all workers, in the order of the ring: A,B,C.")
    ],
    rank: Annotated[int, typer.Option(min=0, help="This worker's place in the ring.")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port, the same at all.")] = 29500,
    gloo: Annotated[bool, typer.Option(help="Use PyTorch's Gloo (torch has to be installed).")] = False,
    workload: Workload = "digits",
    epochs: Epochs = 10,
    hidden: Hidden = HIDDEN_UNITS,
    scale: Scale = 0.01,
    iterations: Iterations = 5,
    volume: Volume = "1",
    warmup: Warmup = 1,
    sizes: Sizes = "64K,1M",
    dtype: Dtype = "float32",
    check: Check = True,
    timeout: Timeout = 60.0,
    out: Out = None,
    progress: ProgressFile = None,
) -> None:
    """Run a worker of the peer: ring all-reduce over TCP, through the same switches, without aggregation.

    All workers of the ring run this with the same options and their own --rank. Writes the same JSON as
    `netfold worker`.
    """
    from netfold.traffic.workloads.ring import GlooWorker, RingWorker

    with _plain_errors():
        addresses = [address.strip() for address in hosts.split(",")]
        if rank >= len(addresses):
            raise ValueError(f"--rank is {rank}, but --hosts names {len(addresses)}; ranks start at 0")
        with (GlooWorker if gloo else RingWorker)(addresses, rank, port, timeout) as one:
            measured = _measure(
                lambda array: one.all_reduce(array, timeout),
                rank,
                len(addresses),
                None,
                check,
                progress,
                lambda run: _work(
                    run, workload, epochs, hidden, scale, iterations, volume, warmup, sizes, dtype
                ),
            )
        _write(out, {"host": addresses[rank], "transport": "gloo" if gloo else "ring", **measured.to_dict()})


@ps.command("ps")
@reaches_controller
def run_server(
    where: Where,
    job: Job = "",
    host: Host = "",
    assignment: AssignmentFile = None,
    reply_to: Annotated[
        str,
        typer.Option(help="Without switches: the workers' IPv4 addresses, A,B,C; each gets its own copy."),
    ] = "",
    local: Local = "0.0.0.0",
    timeout: Timeout = 60.0,
    out: Out = None,
) -> None:
    """Run a parameter server of a job on this host: the root of the trees that the plan gives it.

    It joins the job at the controller and adds up until the job is over or SIGTERM comes; then it writes
    the packets it took, by verdict, as JSON. Exit code 0: the job is done, or SIGTERM; 1: the job failed.
    """
    from netfold.traffic.packets.transport import Address
    from netfold.traffic.server.process import serve

    with _plain_errors():
        members, host = _membership(where, job, host, assignment)
        mine = members.wait(timeout)
        workers = [Address(a.strip(), mine.udp_port) for a in reply_to.split(",") if a.strip()]
        _write(out, {"host": host, "job": mine.job, "verdicts": serve(members, local, workers)})


@send.command("send")
def run_send(
    destination: Annotated[str, typer.Argument(help="IPv4 address: the tree's root.")],
    tree: Annotated[int, typer.Option(min=0, max=65535)] = 1,
    child: Annotated[int, typer.Option(min=0, max=65535, help="The sender's number in the tree.")] = 0,
    chunk: Annotated[int, typer.Option(min=0, help="Number of the first chunk.")] = 0,
    count: Annotated[int, typer.Option(min=1, help="How many chunks to send.")] = 1,
    epoch: Annotated[int, typer.Option(min=0, max=4095)] = 1,
    slots: Annotated[
        int, typer.Option(min=1, max=65536, help="Slots of the tree: chunk = round * slots + slot.")
    ] = 64,
    lanes: Annotated[int, typer.Option(min=1, max=256)] = 64,
    value: Annotated[int, typer.Option(help="Lane i carries value + i.")] = 1,
    exponent: Annotated[int, typer.Option(min=0, max=255)] = 0,
    overflow: Annotated[bool, typer.Option("--overflow", help="Set the overflow flag.")] = False,
    port: Annotated[int, typer.Option(min=61440, max=61695, help="The job's UDP port.")] = 61440,
    listen: Annotated[float, typer.Option(min=0.0, help="Print what comes back for so many seconds.")] = 1.0,
) -> None:
    """Craft gradient packets by hand, with scapy, and print what comes back. For exploration: nothing is
    repeated.

    Example: netfold send 10.0.0.100 --tree 7 --child 2 --value 40
    """
    from netfold.traffic.scapy_netfold import gradient
    from netfold.traffic.workloads.craft import exchange

    with _plain_errors():
        packets = [
            gradient(tree, child, c, slots, epoch, [value + i for i in range(lanes)], exponent, overflow)
            for c in range(chunk, chunk + count)
        ]
        for line in exchange(destination, port, packets, listen):
            typer.echo(line)


@background.command("background")
def run_background(
    peer: Annotated[str, typer.Argument(help="IPv4 address to send to, or to bind with --sink.")],
    port: Annotated[int, typer.Option(min=1, max=65535)] = 5001,
    sink: Annotated[bool, typer.Option("--sink", help="Take traffic instead of sending it.")] = False,
    protocol: Annotated[str, typer.Option(help="udp or tcp.")] = "udp",
    rate: Annotated[float, typer.Option(min=0.0, help="Mbit/s; 0: as fast as it goes.")] = 10.0,
    seconds: Annotated[float, typer.Option(min=0.01, help="How long.")] = 10.0,
    size: Annotated[int, typer.Option(min=1, max=65000, help="Payload bytes of a datagram or write.")] = 1200,
    out: Out = None,
) -> None:
    """Send or take background traffic: the other users of the links."""
    from netfold.traffic.workloads.background import Protocol, send_flow, sink_flow

    with _plain_errors():
        kind = Protocol(protocol)
        measured = (
            sink_flow(peer, port, kind, seconds) if sink else send_flow(peer, port, kind, rate, seconds, size)
        )
        _write(out, {"peer": peer, "port": port, "protocol": protocol, "sink": sink, **measured})


def _measure(
    all_reduce: Callable[[Any], None],
    rank: int,
    workers: int,
    scheme: Scheme | None,
    check: bool,
    progress: Path | None,
    work: Callable[[Run], Result],
) -> Result:
    from netfold.traffic.workloads.benchmark import Run

    def note(report: dict[str, Any]) -> None:
        if progress is not None:
            with progress.open("a") as file:
                file.write(json.dumps({"rank": rank, "at": time.monotonic(), **report}) + "\n")

    return work(Run(all_reduce, rank, workers, scheme, check, note))


def _work(
    run: Run,
    workload: str,
    epochs: int,
    hidden: int,
    scale: float,
    iterations: int,
    volume: str,
    warmup: int,
    sizes: str,
    dtype: str,
) -> Result:
    from netfold.traffic.numerics import DTYPES

    if workload == "digits":
        return run.digits(epochs, hidden)
    if workload == "sizes":
        if dtype not in (known := [str(one) for one in DTYPES]):
            raise ValueError(f"--dtype is '{dtype}'; it must be one of {', '.join(known)}")
        arrays = [_bytes(size) for size in sizes.split(",")]
        return run.sizes(arrays, iterations, warmup, dtype, _bytes(volume))
    return run.model(workload, scale, iterations)


def _bytes(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number, factor = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
    if not number.strip().isdigit() or int(number) == 0:
        raise ValueError(f"--bytes has '{text}'; sizes are whole numbers with K, M or G behind, as in 4K,1M")
    return int(number) * factor


def _scheme(fixed_bits: int | None) -> Scheme | None:
    """None: as the job's file says."""
    from netfold.traffic.numerics import Fixed

    return None if fixed_bits is None else Fixed(fixed_bits)


def _membership(where: Where, job: str, host: str, file: Path | None) -> tuple[Membership, str]:
    """Also the host's name, which the controller knows if nobody has given it."""
    if file is not None:
        from netfold.traffic.membership.part import Alone

        return Alone(_read_assignment(file)), host
    if not job:
        raise ValueError("--job is needed to join at the controller (or --assignment FILE without one)")
    from netfold.traffic.membership.host import own_host
    from netfold.traffic.membership.membership import Attending

    connection = where.connection()
    name = host or own_host(connection).name
    return Attending(connection, job, name), name


def _read_assignment(file: Path) -> Assignment:
    from google.protobuf import json_format

    from netfold.api import netfold_pb2 as pb
    from netfold.traffic.membership.membership import from_proto

    try:
        return from_proto(json_format.Parse(file.read_text(), pb.Assignment()))
    except json_format.ParseError as error:
        raise ValueError(
            f"{file}: {error}; it has to be an Assignment of api/netfold.proto as JSON"
        ) from None


def _write(out: Path | None, report: dict[str, Any]) -> None:
    text = json.dumps(report)
    if out is None:
        typer.echo(text)
        return
    part = out.with_name(f".{out.name}.part")
    part.write_text(text + "\n")
    part.replace(out)  # whoever waits for the file never reads half of it


@contextmanager
def _plain_errors() -> Iterator[None]:
    """One line on standard error and exit code 1 for what can be expected to go wrong."""
    from netfold.api.connection import ConnectError
    from netfold.traffic.errors import TrafficError

    try:
        yield
    except (TrafficError, ConnectError, OSError, ValueError, ModuleNotFoundError) as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)
