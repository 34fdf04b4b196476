# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Handles of the hosts and switches of a running network."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from netfold.testbed.network.processes import SwitchProcess, wait_ready
from netfold.testbed.network.spawner import Spawner
from netfold.testbed.network.tools import tool

GRACE_S = 3.0
"""For a command to end itself."""


class HostHandle:
    """A host; `pid`: a process in its namespace."""

    def __init__(self, name: str, pid: int, spawner: Spawner) -> None:
        self.name = name
        self.pid = pid
        self._spawner = spawner

    def popen(self, command: Sequence[object], **options: Any) -> subprocess.Popen[Any]:
        """Start a command in the host; `options`: of subprocess.Popen. It ends with the network at the latest."""
        return self._spawner.popen([tool("mnexec"), "-a", self.pid, *command], **options)

    def run(
        self, command: Sequence[object], timeout_s: float = 60.0, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Run a command in the host; its exit code and output (text). Raises subprocess.TimeoutExpired, and ends the
        command before."""
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        with self.popen(command, **settings) as process:
            try:
                output, errors = process.communicate(timeout=timeout_s)
            except BaseException:
                process.terminate()  # a launcher ends what it has started
                try:
                    process.wait(timeout=GRACE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


class SwitchHandle:
    """A switch. `interfaces`: kernel interface of each port, by neighbor."""

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
        """None if it is not running."""
        return self._process.pid

    def kill(self) -> None:
        """Kill it, like a crash."""
        self._process.kill()

    def stop(self) -> None:
        """Stop it gracefully."""
        self._process.stop()

    def start(self) -> None:
        """Restart it without program and entries, wait until it answers, and restore the faults of its links. Raises
        SwitchFailedError, PortTakenError."""
        if self.pid is None:
            self._process.start()
        wait_ready([self._process], self._ready_timeout_s)
        self._on_start(self.name)

    def restart(self) -> None:
        self.stop()
        self.start()
