# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page of a run: `netfold controller web` beside its controller, and the socket that it listens at."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from pathlib import Path

from netfold.protocol.environment import Variable
from netfold.testbed.errors import ProcessFailedError, RunError, RunTimeoutError
from netfold.testbed.managed import ManagedResource
from netfold.testbed.network.isolation import is_isolated
from netfold.testbed.network.processes import wait_or_kill
from netfold.testbed.network.targets import installed_command
from netfold.testbed.processes import last_line

READY_S = 30.0
POLL_S = 0.05


def page_socket(port: int) -> int:
    """The descriptor of a socket that listens at this port of loopback, outside the network's namespaces: the run has a
    loopback interface of its own, and browsers are outside. Call it before the command enters the namespaces, and again
    within, where it returns the inherited one. Raises RunError."""
    inherited = os.environ.get(Variable.PAGE_SOCKET, "")
    if inherited.isdecimal() and is_isolated():
        return int(inherited)
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise RunError(f"--web: cannot listen at 127.0.0.1:{port}: {error.strerror}") from error
    listener.set_inheritable(True)
    os.environ[Variable.PAGE_SOCKET] = str(listener.fileno())
    return listener.detach()


class WebPage(ManagedResource):
    """`netfold controller web` at `address`."""

    def __init__(self, controller: str, directory: Path, descriptor: int) -> None:
        """`controller`: the address of its service; `descriptor`: of a socket that listens."""
        super().__init__()
        self.address = ""
        self._descriptor = descriptor
        self._log = directory / "web.log"
        options = ["--controller", controller, "--listen", f"fd:{descriptor}"]
        self._command = [installed_command("netfold"), "controller", "web", *options]

    def _bring_up(self) -> None:
        with self._log.open("w") as log:
            process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                pass_fds=[self._descriptor],
            )
        self._open.callback(_end, process)
        deadline = time.monotonic() + READY_S
        while (found := re.search(r"http\S+", self._log.read_text())) is None:
            if process.poll() is not None:
                raise ProcessFailedError("netfold controller web", process.returncode, last_line(self._log))
            if time.monotonic() > deadline:
                raise RunTimeoutError(f"netfold controller web was not ready within {READY_S:.0f} s")
            time.sleep(POLL_S)  # the log of a process sends no notification
        self.address = found[0]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    wait_or_kill(process, 5.0)
