# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The hosts and switches of a running network, as its user holds them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from netfold.topologies.network.processes import SwitchProcess, wait_ready
from netfold.topologies.network.spawner import Spawner
from netfold.topologies.network.tools import tool


class HostHandle:
    """A host; `pid` is a process in its namespace."""

    def __init__(self, name: str, pid: int, spawner: Spawner) -> None:
        self.name = name
        self.pid = pid
        self._spawner = spawner

    def popen(self, command: Sequence[object], **options: Any) -> subprocess.Popen[Any]:
        """Start a command in the host; `options` are those of subprocess.Popen. It ends with the network at the
        latest."""
        return self._spawner.popen([tool("mnexec"), "-a", self.pid, *command], **options)

    def run(
        self, command: Sequence[object], timeout_s: float, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Run a command in the host, and return its exit code and output (text). Raises subprocess.TimeoutExpired."""
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        with self.popen(command, **settings) as process:
            try:
                output, errors = process.communicate(timeout=timeout_s)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


class SwitchHandle:
    """A switch. `interfaces` gives the kernel interface of each port, by the neighbor that it leads to."""

    def __init__(
        self,
        process: SwitchProcess,
        interfaces: Mapping[str, str],
        ready_timeout_s: float,
        on_start: Callable[[str], None],
    ) -> None:
        launch = process.launch
        self.name = launch.name
        self.device_id = process.device_id
        self.grpc_address = launch.grpc_address
        self.control_socket = launch.control_socket
        self.log = process.log
        self.interfaces = interfaces
        self._process = process
        self._ready_timeout_s = ready_timeout_s
        self._on_start = on_start

    @property
    def pid(self) -> int | None:
        """None if it does not run."""
        return self._process.pid

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()

    def stop(self) -> None:
        """End it in order."""
        self._process.stop()

    def start(self) -> None:
        """Start it again, without program and entries, and wait until it answers; faults of its links are back then.
        Raises SwitchFailedError, PortTakenError."""
        if self.pid is None:
            self._process.start()
        wait_ready([self._process], self._ready_timeout_s)
        self._on_start(self.name)

    def restart(self) -> None:
        self.stop()
        self.start()
