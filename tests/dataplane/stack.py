# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The model of a Tofino with the chip's own drivers on it, on this machine, as the switch of remote.py:

make run TARGET=tofino-model          # compiles the program, among other things
NETFOLD_SWITCH=tofino-model pytest tests/dataplane -k remote -m "not long"
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import numpy as np

from netfold.topologies.network import tofino_model
from tests import simple_switch
from tests.dataplane.bmv2 import link, sweep
from tests.dataplane.remote import PORTS, RemoteDevice, RemotePort, RemoteSwitch, opened
from tests.ports import free_port
from tools.p4build import REPOSITORY

NAME = "tofino-model"
PROGRAM = REPOSITORY / "out" / "tofino-model" / "tofino"
ANSWER_S = 200.0
"""On a machine that does other things, too."""

_numbers = itertools.count()


def profile(address: str, interfaces: dict[int, str]) -> RemoteSwitch:
    """What is different there. All ports are in the CPU port's pipe: by it slots are read and reset."""
    first = tofino_model.CPU_PORT & ~0x7F
    return RemoteSwitch(
        address=address,
        device_id=tofino_model.DEVICE_ID,
        p4info=PROGRAM / "netfold.p4info.txtpb",
        config=PROGRAM / "netfold.pi.bin",
        cpu_port=tofino_model.CPU_PORT,
        one_shot=True,
        full_width=True,
        least_bytes=60,
        quiet_ms=200,
        answer_s=ANSWER_S,
        shared_push=True,
        trees=1024,
        parses_options=False,
        ports={n: RemotePort(port=first + n, interface=interfaces[n]) for n in PORTS},
    )


@contextmanager
def running() -> Iterator[RemoteDevice]:
    """Both processes and their links go whatever happens. Raises NetworkError where something is missing."""
    tofino_model.check()
    tofino_model.check_room()
    with ExitStack() as stack:
        sweep()
        name = f"nf{np.base_repr(os.getpid(), 36).lower()}x{next(_numbers)}"
        for port in PORTS:
            stack.enter_context(link(f"{name}p{port}"))
        spec = profile(f"127.0.0.1:{free_port()}", {port: f"{name}p{port}t" for port in PORTS})
        folder = Path(stack.enter_context(TemporaryDirectory()))
        command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", tofino_model.__name__]
        command += ["--grpc", spec.address, "--folder", str(folder)]
        command += [word for n, p in spec.ports.items() for word in ("-i", f"{p.port}@{name}p{n}")]
        log = folder / "switch.log"
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, cwd=REPOSITORY)
        stack.callback(process.wait, ANSWER_S)
        stack.callback(process.terminate)
        with grpc.insecure_channel(spec.address) as channel:
            simple_switch.wait_until_ready(process, channel, log, ANSWER_S)
        yield stack.enter_context(opened(spec, folder))
