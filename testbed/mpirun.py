# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""MPI programs in the hosts of a testbed: the launcher runs in the first one, and starts its helpers in the others'
namespaces."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from netfold.testbed.deployment import Deployment
from netfold.testbed.network.handles import HostHandle
from netfold.testbed.network.tools import tool
from netfold.traffic.mpi.launch import Flavor, MpiProgram, command_line, flavor_of
from netfold.traffic.mpi.recipe import build, compiler_of

INTERFACE = "eth0"

_OPTIONS = {
    Flavor.OPEN_MPI: (
        "--allow-run-as-root",
        *("--mca", "btl_tcp_if_include", INTERFACE, "--mca", "oob_tcp_if_include", INTERFACE),
        *("--mca", "btl", "tcp,vader,self", "--mca", "pml", "ob1"),
    ),
    Flavor.HYDRA: ("-iface", INTERFACE),
}
_ENVIRONMENT = {
    Flavor.OPEN_MPI: {},
    Flavor.HYDRA: {"UCX_NET_DEVICES": INTERFACE, "UCX_TLS": "tcp,self"},
}


def start_mpirun(
    system: Deployment, program: MpiProgram, *, mpirun: str, uses_netfold: bool = True, **options: Any
) -> subprocess.Popen[Any]:
    """Starts the program on its hosts with this launcher; `uses_netfold`: through the switches, else over TCP.
    `options`: of subprocess.Popen. Raises MpiBuildError."""
    flavor = flavor_of(mpirun)
    folder = system.directory
    first = program.hosts[0]
    addresses = {name: str(host.ip) for name, host in system.net.addressing.hosts.items()}
    environment = {**_ENVIRONMENT[flavor], **program.environment}
    if uses_netfold:
        environment |= {
            "LD_PRELOAD": str(build(compiler_of(mpirun))),
            "NETFOLD_CONTROLLER": system.service.address,
        }
    own = () if flavor is Flavor.OPEN_MPI else ("-localhost", addresses[first])
    launcher = _write_launcher(folder / "launcher", system.net.hosts, addresses)
    whole = replace(
        program,
        hosts=[addresses[host] for host in program.hosts],  # no server knows their names
        launcher=str(launcher),
        options=(*_OPTIONS[flavor], *own, *program.options),
        environment=environment,
    )
    command = command_line(mpirun, flavor, whole)
    named = [tool("unshare"), "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', first, *command]
    return system.net.hosts[first].popen(named, env={**os.environ, "TMPDIR": "/tmp"}, **options)


def _write_launcher(file: Path, hosts: Mapping[str, HostHandle], addresses: Mapping[str, str]) -> Path:
    """A program in place of ssh. Each host has a name of its own, by which MPI libraries tell machines apart."""
    cases = "\n".join(f"    {addresses[name]}) pid={host.pid} name={name} ;;" for name, host in hosts.items())
    file.write_text(
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
    file.chmod(0o755)
    return file
