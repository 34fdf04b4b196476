# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold roce`: a run with virtual machines; agent, program and connection adoption for RoCE workers."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from netfold.protocol.environment import Variable
from netfold.protocol.options import ControllerOptions, reaches_controller
from netfold.protocol.runtime import DEFAULT_NAME
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.network.options import ModeOption, NameOption

Job = Annotated[str, typer.Option(help="The job's name, as submitted.")]
Host = Annotated[str, typer.Option(envvar=Variable.HOST, help="The worker's name in the fabric.")]

app = typer.Typer()


@app.command()
def run(
    per_leaf: Annotated[int, typer.Option(min=2, help="Machines at each leaf: 2 (four in all), or 4.")] = 2,
    sizes: Annotated[str, typer.Option(help="Sizes of arrays, for example 4K,1M.")] = "4K,64K,1M,16M",
    losses: Annotated[str, typer.Option(help="Loss rates of the links, one step each.")] = "0,0.001,0.01",
    most_with_loss: Annotated[str, typer.Option(help="Largest array of the steps with loss.")] = "1M",
    slots: Annotated[
        int,
        typer.Option(
            help="Slots of the jobs' trees, twice the packets in flight; 0: chosen by the controller."
        ),
    ] = 0,
    plain: Annotated[bool, typer.Option(help="Run ib_send_bw next to a job, too.")] = True,
    timeout: Annotated[float, typer.Option(min=1, help="Timeout of each step, seconds.")] = 900.0,
    out: Annotated[Path, typer.Option(help="JSON file of the report.")] = Path("out/roce.json"),
    name: NameOption = DEFAULT_NAME,
    network: ModeOption = NetworkMode.AUTO,
) -> None:
    """Run RoCE jobs on virtual machines with Linux's RDMA endpoints (rdma_rxe) in a leaf-spine.

    Reduces arrays of all sizes with every element checked, with and without loss, and beside a plain connection;
    before, the same arrays in UDP and as a TCP ring of processes. Completed steps are shown and written even after an
    error. Needs qemu-system-x86, and root or user namespaces with /dev/net/tun; Debian's kernel and verbs packages are
    downloaded with apt into a cache folder, not installed.

    Exit codes: 0 all sums are right, 1 an error (one line explains it) or a wrong element."""
    from rich.console import Console

    from netfold.testbed.errors import RunError
    from netfold.testbed.network.errors import NetworkError
    from netfold.testbed.network.isolation import run_isolated
    from netfold.testbed.network.sudo_user import as_sudo_user
    from netfold.testbed.roce.packages import unpacked
    from netfold.testbed.roce.run import RoceRun, RoceRunOptions, render
    from netfold.topologies.fabric import FabricError

    console = Console()

    def report_step(text: str) -> None:
        console.print(f"[dim]{text}[/dim]")

    try:
        options = RoceRunOptions(
            per_leaf=per_leaf,
            sizes=[_bytes(s) for s in sizes.split(",")],
            losses=[float(x) for x in losses.split(",")],
            most_with_loss=_bytes(most_with_loss),
            plain=plain,
            timeout_s=timeout,
            slots=slots or None,
        )
        unpacked(report_step)  # namespaces of their own do not reach Debian's mirrors
        run_isolated(name, network)
        report = RoceRun(options, report_step).execute()
        console.print(render(report))
        with as_sudo_user():
            report.write(out)
    except (RunError, NetworkError, FabricError, OSError, ValueError) as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)
    if report.failed:
        typer.echo(f"netfold: {report.failed}", err=True)
    sys.exit(1 if report.failed or report.wrong else 0)


def _bytes(text: str) -> int:
    """Raises ValueError."""
    units = {"K": 1 << 10, "M": 1 << 20}
    size = int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)
    if size < 4 or size % 4:
        raise ValueError(f"the size {text} is not a multiple of 4 bytes")
    return size


@app.command()
@reaches_controller
def agent(
    where: ControllerOptions,
    job: Job,
    host: Host,
    listen: Annotated[
        str, typer.Option(help="Address for the worker: unix:PATH, or a port on 127.0.0.1.")
    ] = "unix:/run/netfold-roce.sock",
    connect: Annotated[
        Path | None,
        typer.Option(help="Connect to this unix socket instead, for example a machine's serial port."),
    ] = None,
) -> None:
    """Represent one RoCE worker, on this machine or another, at the controller.

    Exit codes: 0 the worker left or disconnected, 1 an error (one line explains it)."""
    from netfold.protocol.connection import ConnectError
    from netfold.traffic.agent.worker_stream import WorkerMessageError
    from netfold.traffic.roce.agent import Agent

    try:
        stream = _accepted(listen) if connect is None else _connected(connect)
        with stream:
            Agent(where.connection(), job, host, stream).run()
    except (WorkerMessageError, ConnectError, OSError, ValueError) as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)


@app.command()
@reaches_controller
def adopt(
    where: ControllerOptions,
    job: Job,
    host: Host,
    send_qpn: Annotated[int, typer.Option(help="Queue pair that sends to the successor in the ring.")],
    recv_qpn: Annotated[int, typer.Option(help="Queue pair that receives from the predecessor.")],
    first_psn: Annotated[int, typer.Option(help="First PSN of the sending queue pair.")],
    timeout: Annotated[float, typer.Option(min=1, help="Timeout until the leaf aggregates, seconds.")] = 60.0,
) -> None:
    """Join a job of one tree for an unmodified program with RC connections, until interrupted.

    Prints when the leaf aggregates, and the packets that the program may have in flight. It must not send earlier; with
    more packets in flight it may stall (docs/reference/roce.md, section 1).

    Exit codes: 0 interrupted, 1 an error, or aggregation ended (one line explains it)."""
    from netfold.protocol.connection import ConnectError
    from netfold.traffic.errors import TrafficError
    from netfold.traffic.roce.adopted import AdoptedQueuePairs, Adoption

    try:
        with Adoption(where.connection(), job, host) as member:
            window = member.adopt(AdoptedQueuePairs(send_qpn, recv_qpn, first_psn), timeout)
            member.wait_added_up(timeout)
            typer.echo(f"aggregated; at most {window} packets in flight")
            member.wait_ended()
            typer.echo(f"netfold: {member.end_reason}", err=True)
            sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(0)
    except (TrafficError, ConnectError, OSError, ValueError) as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)


@app.command()
def build(
    out: Annotated[Path, typer.Option(help="Path of the program.")] = Path("netfold-roce"),
) -> None:
    """Compile the RoCE worker, netfold-roce, for this machine (needs gcc and libibverbs-dev).

    Exit codes: 0 compiled, 1 the compiler failed (one line explains it)."""
    from netfold.traffic.roce import recipe

    try:
        typer.echo(str(recipe.build(out)))
    except recipe.RoceBuildError as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)


@app.command()
def packages() -> None:
    """Download and unpack the Debian packages of which the virtual machines consist (70 MB; not installed).

    `run` does it where it has not been done.

    Exit codes: 0 they are here, 1 the download failed (one line explains it)."""
    from netfold.testbed.errors import RunError
    from netfold.testbed.roce.packages import unpacked

    try:
        typer.echo(str(unpacked(typer.echo)))
    except RunError as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)


def _accepted(listen: str) -> socket.socket:
    """The first worker that connects. Local addresses only: neither end is authenticated."""
    if listen.startswith("unix:"):
        path = Path(listen.removeprefix("unix:"))
        path.unlink(missing_ok=True)
        server = socket.socket(socket.AF_UNIX)
        old = os.umask(0o077)
        try:
            server.bind(str(path))
        finally:
            os.umask(old)
        server.listen(1)
    else:
        server = socket.create_server(("127.0.0.1", int(listen)))
    with server:
        return server.accept()[0]


def _connected(path: Path) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(str(path))
    return stream
