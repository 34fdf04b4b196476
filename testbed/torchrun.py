# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs in the hosts of a testbed, started by `torchrun`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from netfold.testbed.errors import RunError
from netfold.testbed.processes import HostTask, first_exception, last_line

TORCH_PYTHON = Path(".venv-torch") / "bin" / "python"
_INTERFACE = "eth0"
"""For Gloo, whose default is the address of the host name: all hosts share this machine's."""

_EXIT_CODE = re.compile(r"^ *exitcode *: (.*)$", re.MULTILINE)
"""Exit code of a rank in torchrun's report."""


@dataclass(frozen=True)
class TorchProgram:
    """A script and its arguments; `ranks` processes on each host. `environment`: added to that of torchrun;
    `result_option`: of the script, names the file of the first rank's JSON result; "": it has no result. `python`: the
    interpreter with PyTorch; None: `torch_python`."""

    script: Path
    arguments: Sequence[object] = ()
    ranks: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    result_option: str = ""
    python: Path | None = None


def torch_python() -> Path:
    """The interpreter with PyTorch: this one, else the checkout's. Raises RunError."""
    if find_spec("torch") is not None:
        return Path(sys.executable)
    if not TORCH_PYTHON.exists():
        raise RunError(
            f"neither this Python nor {TORCH_PYTHON.parent.parent} has PyTorch: pip install 'netfold[torch]', or in a "
            f"checkout make {TORCH_PYTHON.parent.parent}/.ready"
        )
    return TORCH_PYTHON.absolute()


def torchrun_tasks(
    program: TorchProgram, addresses: Mapping[str, str], folder: Path, port: int
) -> list[HostTask]:
    """torchrun on each of the hosts, of which the first has the rendezvous. `folder` takes logs and results. Raises
    RunError."""
    environment = {
        "GLOO_SOCKET_IFNAME": _INTERFACE,
        "OMP_NUM_THREADS": "1",  # all hosts share this machine's processors
        "HOME": os.environ.get("HOME", "/root"),
        **program.environment,
    }
    python, first = program.python or torch_python(), next(iter(addresses.values()))
    tasks = []
    for number, host in enumerate(addresses):
        result = folder / f"{host}.json"
        torchrun = ["-m", "torch.distributed.run", "--nnodes", len(addresses), "--node-rank", number]
        torchrun += ["--nproc-per-node", program.ranks, "--master-addr", first, "--master-port", port]
        command = ["env", *(f"{key}={value}" for key, value in environment.items()), python, *torchrun]
        command += [program.script.absolute(), *program.arguments]
        command += [program.result_option, result] if program.result_option else []
        tasks.append(HostTask(host, command, result, first_error, bool(program.result_option)))
    return tasks


def first_error(log: Path) -> str:
    """The first exception in the output of the ranks and torchrun; of ranks without one, what torchrun reports."""
    if error := first_exception(log):
        return error
    reported = _EXIT_CODE.search(log.read_text(errors="replace"))
    return f"exitcode: {reported[1]}" if reported else last_line(log)
