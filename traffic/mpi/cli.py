# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold mpirun`: an MPI program whose collectives go through the network."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from netfold.protocol.connection import ConnectError
from netfold.traffic.mpi.launch import MpiProgram, command_line, flavor_of, preload_environment
from netfold.traffic.mpi.recipe import MpiBuildError, build, compiler_of

mpirun = typer.Typer(help="Run an MPI program whose collectives go through the network.")

_PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""What follows the program's name is the program's."""


@mpirun.command(context_settings=_PASS_ON)
def _mpirun(
    command: Annotated[list[str] | None, typer.Argument(metavar="PROGRAM...")] = None,
    ranks: Annotated[
        int, typer.Option("-n", min=1, help="Number of ranks; placed on the hosts in turn.")
    ] = 1,
    hosts: Annotated[
        str, typer.Option(metavar="A,B,C", help="Hosts, as the MPI launcher knows them; default: this one.")
    ] = "",
    launcher: Annotated[
        str, typer.Option(help="Program in place of ssh: LAUNCHER HOST COMMAND...; default: ssh.")
    ] = "",
    with_mpirun: Annotated[
        str, typer.Option("--mpirun", help="The MPI launcher: Open MPI's, or MPICH's.")
    ] = "mpirun",
    print_library: Annotated[
        bool, typer.Option("--print-library", help="Print the library's path, for LD_PRELOAD.")
    ] = False,
) -> None:
    """Run an MPI program whose collectives go through the network; exits with its exit code."""
    try:
        if print_library:
            typer.echo(build(compiler_of(with_mpirun)))
            return
        if not command:
            raise typer.BadParameter("name the program to run", param_hint="PROGRAM")
        flavor = flavor_of(with_mpirun)
        program = MpiProgram(
            command,
            ranks,
            [host for host in hosts.split(",") if host],
            launcher,
            environment=preload_environment(with_mpirun),
        )
    except (MpiBuildError, ConnectError) as error:
        sys.exit(f"netfold: {error}")
    words = command_line(with_mpirun, flavor, program)
    os.execvp(words[0], words)
