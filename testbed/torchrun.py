# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs in the hosts of a testbed: `torchrun` on each, as its users start it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from netfold.testbed.deployment import Deployment
from netfold.testbed.errors import RunError
from netfold.testbed.processes import Group, Task, last_line

TORCH_PYTHON = Path(".venv-torch") / "bin" / "python"
_INTERFACE = (
    "eth0"  # of each host, for Gloo, which would ask for the host's name, and all have that of this machine
)

_ERROR = re.compile(r"(\[rank\d+\]: )?[\w.]*(Error|Exception)\b.*: ")


@dataclass(frozen=True)
class Program:
    """A script and its arguments; `ranks` of it on each host. `environment` is added to that of torchrun."""

    script: Path
    arguments: Sequence[object] = ()
    ranks: int = 1
    environment: dict[str, str] = field(default_factory=dict)


def torch_python() -> Path:
    """The interpreter that has PyTorch. Raises RunError."""
    if not TORCH_PYTHON.exists():
        raise RunError(
            f"PyTorch's environment, {TORCH_PYTHON.parent.parent}, is missing: make {TORCH_PYTHON.parent.parent}/.ready"
        )
    return TORCH_PYTHON.absolute()


def start_torchrun(system: Deployment, name: str, hosts: Sequence[str], program: Program, port: int) -> Group:
    """Starts the program on all of `hosts`. It is given `--out FILE` to write its result, JSON, to: a file for each
    host, of its first rank. Raises RunError."""
    folder = system.directory / name
    folder.mkdir()
    first = system.net.addressing.hosts[hosts[0]].ip
    environment = {
        "NETFOLD_CONTROLLER": system.service.address,
        "GLOO_SOCKET_IFNAME": _INTERFACE,
        "OMP_NUM_THREADS": "1",  # all hosts share the processors of this machine
        "HOME": os.environ.get("HOME", "/root"),
        **program.environment,
    }
    python = torch_python()
    tasks = []
    for number, host in enumerate(hosts):
        result = folder / f"{host}.json"
        torchrun = ["-m", "torch.distributed.run", "--nnodes", len(hosts), "--node-rank", number]
        torchrun += ["--nproc-per-node", program.ranks, "--master-addr", first, "--master-port", port]
        command = ["env", *(f"{key}={value}" for key, value in environment.items()), python, *torchrun]
        command += [program.script.absolute(), *program.arguments, "--out", result]
        tasks.append(Task(host, command, result, first_error))
    return Group(system.net, tasks)


def first_error(log: Path) -> str:
    """Of what the ranks and torchrun say, which is much: how the first exception ends."""
    lines = log.read_text(errors="replace").splitlines()
    return next((x.strip() for x in lines if _ERROR.match(x)), last_line(log))
