# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs in the hosts of a testbed, started by `torchrun`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from netfold.protocol.environment import Variable
from netfold.testbed.deployment import Deployment
from netfold.testbed.errors import RunError
from netfold.testbed.processes import HostTask, ProcessGroup, first_exception, last_line

TORCH_PYTHON = Path(".venv-torch") / "bin" / "python"
_INTERFACE = "eth0"
"""For Gloo, whose default is the address of the host name: all hosts share this machine's."""

_EXIT_CODE = re.compile(r"^ *exitcode *: (.*)$", re.MULTILINE)
"""Exit code of a rank in torchrun's report."""


@dataclass(frozen=True)
class TorchProgram:
    """A script and its arguments; `ranks` processes on each host. `environment`: added to that of torchrun."""

    script: Path
    arguments: Sequence[object] = ()
    ranks: int = 1
    environment: dict[str, str] = field(default_factory=dict)


def torch_python() -> Path:
    """The interpreter with PyTorch. Raises RunError."""
    if not TORCH_PYTHON.exists():
        raise RunError(
            f"PyTorch's environment, {TORCH_PYTHON.parent.parent}, is missing: make {TORCH_PYTHON.parent.parent}/.ready"
        )
    return TORCH_PYTHON.absolute()


def start_torchrun(
    system: Deployment, name: str, hosts: Sequence[str], program: TorchProgram, port: int
) -> ProcessGroup:
    """Starts the program on all of `hosts`. `--out FILE` receives its JSON result, of the first rank of each host.
    Raises RunError."""
    folder = system.directory / name
    folder.mkdir()
    first = system.net.addressing.hosts[hosts[0]].ip
    environment = {
        Variable.CONTROLLER: system.service.address,
        "GLOO_SOCKET_IFNAME": _INTERFACE,
        "OMP_NUM_THREADS": "1",  # all hosts share this machine's processors
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
        tasks.append(HostTask(host, command, result, first_error))
    return ProcessGroup(system.net, tasks)


def first_error(log: Path) -> str:
    """The first exception in the output of the ranks and torchrun; of ranks without one, what torchrun reports."""
    if error := first_exception(log):
        return error
    reported = _EXIT_CODE.search(log.read_text(errors="replace"))
    return f"exitcode: {reported[1]}" if reported else last_line(log)
