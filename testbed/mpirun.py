# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""MPI programs in the hosts of a testbed: the launcher runs in the first one, and starts its helpers in the others'
namespaces."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from netfold.protocol.environment import Variable
from netfold.testbed.network.state import HostState, make_folder
from netfold.testbed.network.tools import tool
from netfold.traffic.mpi.launch import Flavor, MpiProgram, command_line, flavor_of
from netfold.traffic.mpi.recipe import build, compiler_of

INTERFACE = "eth0"

AS_ROOT = {Flavor.OPEN_MPI: ("--allow-run-as-root",), Flavor.HYDRA: ()}
"""Options of launchers that else refuse root, which processes of a host are."""
_OPTIONS = {
    Flavor.OPEN_MPI: (
        *AS_ROOT[Flavor.OPEN_MPI],
        *("--mca", "btl_tcp_if_include", INTERFACE, "--mca", "oob_tcp_if_include", INTERFACE),
        *("--mca", "btl", "tcp,vader,self", "--mca", "pml", "ob1"),
    ),
    Flavor.HYDRA: ("-iface", INTERFACE),
}
_ENVIRONMENT = {
    Flavor.OPEN_MPI: {},
    Flavor.HYDRA: {"UCX_NET_DEVICES": INTERFACE, "UCX_TLS": "tcp,self"},
}


def preload_of(mpirun: str, controller: str) -> dict[str, str]:
    """The variables with which ranks of this launcher use netfold and the controller at this address. Raises
    MpiBuildError."""
    return {"LD_PRELOAD": str(build(compiler_of(mpirun))), Variable.CONTROLLER: controller}


def hosts_command(
    program: MpiProgram, hosts: Mapping[str, HostState], folder: Path, mpirun: str
) -> list[str]:
    """The command that starts the program on its hosts, to be run in the first one. `folder` takes its files. Raises
    MpiBuildError."""
    flavor = flavor_of(mpirun)
    first = program.hosts[0]
    own = () if flavor is Flavor.OPEN_MPI else ("-localhost", hosts[first].ip)
    whole = replace(
        program,
        hosts=[hosts[host].ip for host in program.hosts],  # no server knows their names
        launcher=str(_write_launcher(folder, hosts)),
        options=(*_OPTIONS[flavor], *own, *program.options),
        environment={**_ENVIRONMENT[flavor], **program.environment},
    )
    # Names of Open MPI's sockets have to be short.
    named = [tool("unshare"), "--uts", "env", "TMPDIR=/tmp", "sh", "-c", 'hostname "$0"; exec "$@"', first]
    return [*named, *command_line(mpirun, flavor, whole)]


def host_command(host: HostState, command: list[str]) -> list[str]:
    """The command, in the namespaces of a host."""
    return [tool("mnexec"), "-a", str(host.pid), *command]


def _write_launcher(folder: Path, hosts: Mapping[str, HostState]) -> Path:
    """A program in place of ssh. Each host has a name of its own, by which MPI libraries tell machines apart."""
    cases = "\n".join(f"    {host.ip}) pid={host.pid} name={name} ;;" for name, host in hosts.items())
    make_folder(folder)
    file = folder / "mpi-launcher"
    part = folder / f"mpi-launcher-{os.getpid()}"
    part.write_text(
        f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
case $host in
{cases}
    *) echo "$host is no host of the network" >&2; exit 1 ;;
esac
exec {tool("mnexec")} -a $pid {tool("unshare")} --uts sh -c "hostname $name; $*"
"""
    )
    part.chmod(0o755)
    part.replace(file)  # another program may be about to run it
    return file
