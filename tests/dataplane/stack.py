# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The model of a Tofino or a Tofino 2 with the chip's own drivers on it, on this machine, as the switch of remote.py:

make run TARGET=tofino-model          # compiles the program, among other things
NETFOLD_SWITCH=tofino-model pytest tests/dataplane -k remote -m "not long"

python -m netfold.p4src.tools.tofino tofino2 --lanes 32 --out out/tofino2-model
NETFOLD_SWITCH=tofino2-model pytest tests/dataplane -k remote -m "not long"
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import numpy as np
from softswitch.testing import simple_switch
from softswitch.testing.simple_switch import free_port

from netfold.p4src.tools.p4build import REPOSITORY
from netfold.testbed.network import tofino_model
from netfold.topologies.ports import Chip
from tests.dataplane.bmv2 import link, sweep
from tests.dataplane.remote import PORTS, RemoteDevice, RemotePort, RemoteSwitch, opened


@dataclass(frozen=True)
class Stack:
    """A chip's. `ports`: the suite's port n is the chip's port `ports` + n, in the CPU port's pipe, as slots are read
    and reset by that; the first eight of a Tofino 2's pipe are its own."""

    name: str
    chip: Chip
    ports: int
    trees: int

    @property
    def program(self) -> Path:
        return REPOSITORY / "out" / self.name / self.chip


STACKS = {
    stack.name: stack
    for stack in (
        Stack("tofino-model", Chip.TOFINO, ports=256, trees=1024),
        Stack("tofino2-model", Chip.TOFINO2, ports=8, trees=512),
    )
}

ANSWER_S = 200.0
"""Deadline of an answer, on a machine that does other things, too."""

_numbers = itertools.count()


def profile(stack: Stack, address: str, interfaces: dict[int, str]) -> RemoteSwitch:
    """Returns the stack's own settings."""
    return RemoteSwitch(
        address=address,
        device_id=tofino_model.DEVICE_ID,
        p4info=stack.program / "netfold.p4info.txtpb",
        config=stack.program / "netfold.pi.bin",
        cpu_port=tofino_model.CPU_PORTS[stack.chip],
        one_shot=True,
        full_width=True,
        least_bytes=60,
        quiet_ms=20,
        answer_s=ANSWER_S,
        shared_push=True,
        together=50,
        trees=stack.trees,
        parses_options=False,
        ports={n: RemotePort(port=stack.ports + n, interface=interfaces[n]) for n in PORTS},
    )


@contextmanager
def running(stack: Stack) -> Iterator[RemoteDevice]:
    """Both processes and their links go whatever happens. Raises NetworkError where something is missing."""
    tofino_model.check()
    tofino_model.check_capacity()
    with ExitStack() as left:
        sweep()
        name = f"nf{np.base_repr(os.getpid(), 36).lower()}x{next(_numbers)}"
        for port in PORTS:
            left.enter_context(link(f"{name}p{port}"))
        spec = profile(stack, f"127.0.0.1:{free_port()}", {port: f"{name}p{port}t" for port in PORTS})
        folder = Path(left.enter_context(TemporaryDirectory()))
        command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", tofino_model.__name__]
        command += ["--grpc", spec.address, "--folder", str(folder), "--chip", stack.chip]
        command += [word for n, p in spec.ports.items() for word in ("-i", f"{p.port}@{name}p{n}")]
        log = folder / "switch.log"
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, cwd=REPOSITORY)
        left.callback(process.wait, ANSWER_S)
        left.callback(process.terminate)
        with grpc.insecure_channel(spec.address) as channel:
            simple_switch.wait_until_ready(process, channel, log, ANSWER_S)
        yield left.enter_context(opened(spec, folder))
