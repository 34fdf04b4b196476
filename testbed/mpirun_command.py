# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold host mpirun`: an MPI program whose collectives go through the network, on machines or on the hosts of an
emulated network."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated

import typer

from netfold.protocol.connection import ConnectError
from netfold.protocol.environment import Variable
from netfold.protocol.runtime import DEFAULT_NAME
from netfold.testbed.mpirun import AS_ROOT, host_command, hosts_command
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.isolation import enter_network
from netfold.testbed.network.options import NameOption
from netfold.testbed.network.state import RunDirectory
from netfold.topologies.cli import one_line_errors
from netfold.traffic.mpi.launch import (
    MpiProgram,
    StaticProgramError,
    command_line,
    flavor_of,
    preload_environment,
    refuse_static,
)
from netfold.traffic.mpi.recipe import MpiBuildError, build, compiler_of

mpirun = typer.Typer()

_PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""Arguments behind the program's name are the program's."""


@mpirun.command(context_settings=_PASS_ON)
@one_line_errors(NetworkError, MpiBuildError, ConnectError, StaticProgramError)
def _mpirun(
    command: Annotated[list[str] | None, typer.Argument(metavar="PROGRAM...")] = None,
    ranks: Annotated[
        int, typer.Option("-n", min=1, help="Number of ranks; placed on the hosts in turn.")
    ] = 1,
    hosts: Annotated[
        str,
        typer.Option(
            metavar="A,B,C",
            help="Hosts of the network that is up, or as the MPI launcher knows them; default: this one.",
        ),
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
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Run an MPI program whose collectives go through the network; exits with its exit code."""
    if print_library:
        typer.echo(build(compiler_of(with_mpirun)))
        return
    if not command:
        raise typer.BadParameter("name the program to run", param_hint="PROGRAM")
    program = MpiProgram(command, ranks, [host for host in hosts.split(",") if host], launcher)
    network = RunDirectory(name)
    state = None if launcher else network.read()
    if state is not None and program.hosts and set(program.hosts) <= state.hosts.keys() and network.owned:
        enter_network(name)
        environment = {**preload_environment(with_mpirun), Variable.NETWORK: state.run, Variable.NAME: name}
        words = hosts_command(
            replace(program, environment=environment), state.hosts, network.work, with_mpirun
        )
        words = host_command(state.hosts[program.hosts[0]], words)
    else:
        flavor = flavor_of(with_mpirun)
        options = AS_ROOT[flavor] if Variable.NETWORK in os.environ else ()
        environment = preload_environment(with_mpirun)
        words = command_line(with_mpirun, flavor, replace(program, options=options, environment=environment))
    refuse_static(command[0])
    os.execvp(words[0], words)
