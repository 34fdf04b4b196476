# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold roce`: RoCE workers' programs and agents."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from netfold.api.options import Where, reaches_controller

app = typer.Typer(no_args_is_help=True, help="Workers whose hosts speak RoCE: their agent, their program.")


@app.command()
@reaches_controller
def agent(
    where: Where,
    job: Annotated[str, typer.Option(help="The job's name, as submitted.")],
    host: Annotated[str, typer.Option(envvar="NETFOLD_HOST", help="The worker's name in the fabric.")],
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
