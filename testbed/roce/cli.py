# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold roce`: a try with machines, and what RoCE workers need: an agent, a program, or one who adopts theirs."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from netfold.api.options import Where, reaches_controller

Job = Annotated[str, typer.Option(help="The job's name, as submitted.")]
Host = Annotated[str, typer.Option(envvar="NETFOLD_HOST", help="The worker's name in the fabric.")]

app = typer.Typer(no_args_is_help=True, help="RDMA endpoints as workers: try it, their agent, their program.")


@app.command()
def run(
    per_leaf: Annotated[int, typer.Option(min=2, help="Machines at each leaf: 2 (four in all), or 4.")] = 2,
    sizes: Annotated[str, typer.Option(help="Arrays, as in 4K,1M.")] = "4K,64K,1M,16M",
    losses: Annotated[
        str, typer.Option(help="Shares of packets that links lose, each a step.")
    ] = "0,0.001,0.01",
    most_with_loss: Annotated[str, typer.Option(help="The largest array where packets are lost.")] = "1M",
    slots: Annotated[
        int, typer.Option(help="Of the jobs' trees, twice the packets under way; 0: what queues take.")
    ] = 0,
    plain: Annotated[bool, typer.Option(help="Beside a plain ib_send_bw, too.")] = True,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that each step may take.")] = 900.0,
    out: Annotated[Path, typer.Option(help="The report, as JSON.")] = Path("out/roce.json"),
) -> None:
    """Virtual machines with Linux's own RDMA endpoints (rdma_rxe) as the hosts of a leaf-spine in Mininet.

    Arrays of all sizes are reduced on all of them, every element is checked, links lose packets, and a plain connection
    goes beside; before, the same arrays in UDP and as a TCP ring of processes. What was done by then is shown and
    written, whatever fails. Needs root and qemu-system-x86; Debian's kernel and verbs packages are fetched by apt into
    a cache folder, and not installed.

    Exit codes: 0 done and every sum right, 1 something failed (one line says what) or an element was wrong."""
    from rich.console import Console

    from netfold.testbed.errors import RunError
    from netfold.testbed.roce.run import Options, Run, render
    from netfold.topologies.fabric import FabricError
    from netfold.topologies.network.caller import as_caller, become_root
    from netfold.topologies.network.errors import NetworkError

    console = Console()
    try:
        options = Options(
            per_leaf=per_leaf,
            sizes=[_bytes(s) for s in sizes.split(",")],
            losses=[float(x) for x in losses.split(",")],
            most_with_loss=_bytes(most_with_loss),
            plain=plain,
            timeout_s=timeout,
            slots=slots or None,
        )
        become_root()
        report = Run(options, lambda text: console.print(f"[dim]{text}[/dim]")).execute()
        console.print(render(report))
        with as_caller():
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
    where: Where,
    job: Job,
    host: Host,
    listen: Annotated[
        str, typer.Option(help="Where the worker comes: unix:PATH, or a port of 127.0.0.1.")
    ] = "unix:/run/netfold-roce.sock",
    connect: Annotated[
        Path | None,
        typer.Option(help="In place of it a unix socket to go to, such as a machine's serial port."),
    ] = None,
) -> None:
    """Attend a job for one RoCE worker, which need not be on this machine.

    Exit codes: 0 the worker left or is gone, 1 something failed (one line says what)."""
    from netfold.api.connection import ConnectError
    from netfold.traffic.roce.agent import Agent, WorkerLineError

    try:
        stream = _accepted(listen) if connect is None else _connected(connect)
        with stream:
            Agent(where.connection(), job, host, stream).run()
    except (WorkerLineError, ConnectError, OSError, ValueError) as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)


@app.command()
@reaches_controller
def adopt(
    where: Where,
    job: Job,
    host: Host,
    out_qpn: Annotated[int, typer.Option(help="The queue pair that sends to the next worker of the ring.")],
    in_qpn: Annotated[int, typer.Option(help="The queue pair where the worker before sends to.")],
    first_psn: Annotated[int, typer.Option(help="The first PSN that the one which sends uses.")],
    timeout: Annotated[float, typer.Option(min=1, help="Seconds until the leaf adds up.")] = 60.0,
) -> None:
    """Attend a job of one tree, until interrupted, for a program that has connections and knows nothing of netfold.

    Says when the leaf adds up, and what the program may have under way: until then it must not send, and if it sends
    more than that before it is acknowledged, it may stand still (docs/roce.md, section 1).

    Exit codes: 0 interrupted, 1 something failed, or the connections are added up no more (one line says why)."""
    from netfold.api.connection import ConnectError
    from netfold.traffic.errors import TrafficError
    from netfold.traffic.roce.adopted import Adoption, Ends

    try:
        with Adoption(where.connection(), job, host) as member:
            window = member.adopt(Ends(out_qpn, in_qpn, first_psn), timeout)
            member.wait_added_up(timeout)
            typer.echo(f"added up, {window} packets under way at most")
            member.wait_over()
            typer.echo(f"netfold: {member.over}", err=True)
            sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(0)
    except (TrafficError, ConnectError, OSError, ValueError) as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)


@app.command()
def build(
    out: Annotated[Path, typer.Option(help="Where the program goes.")] = Path("netfold-roce"),
) -> None:
    """Compile the worker's program, netfold-roce, for this machine (needs gcc and libibverbs-dev).

    Exit codes: 0 done, 1 the compiler refused (one line says why)."""
    from netfold.traffic.roce import recipe

    try:
        typer.echo(str(recipe.build(out)))
    except recipe.BuildError as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)


def _accepted(listen: str) -> socket.socket:
    """The first worker that comes. Others' machines do not reach this: neither end proves who it is."""
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
