# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Switch processes: started in parallel, awaited together, ended with their parent."""

from __future__ import annotations

import contextlib
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc

from netfold.testbed.network.errors import PortTakenError, SwitchFailedError
from netfold.testbed.network.spawner import Spawner
from netfold.testbed.network.targets import Launch, Target

LOG_TAIL = 2
_LEAVE_S = 10.0
_PORT_POLL_S = 0.05
"""Time for children of a killed switch process, with gigabytes of memory, to end and free the port."""

_LISTEN = "0A"
_CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.enable_http_proxy", 0),
)


class SwitchProcess:
    """The process of one switch, in a session of its own: the network ends it, not the terminal's Ctrl-C."""

    def __init__(self, target: Target, launch: Launch, log: Path, spawner: Spawner) -> None:
        self.launch = launch
        self.device_id = target.device_id(launch)
        self.log = log
        self._target = target
        self._spawner = spawner
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """None unless it is running."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the process; `wait_ready` waits for it. Raises PortTakenError."""
        self._wait_for_port()
        with self.log.open("wb") as log:
            self._process = self._spawner.popen(
                self._target.command(self.launch),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=self.launch.descriptors,
            )

    def _wait_for_port(self) -> None:
        """At a first start the port must be free."""
        port = self.launch.grpc_port
        if port is None:
            return None
        deadline = time.monotonic() + (0.0 if self._process is None else _LEAVE_S)
        while True:
            try:
                return check_port(port, self.launch.name)
            except PortTakenError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_PORT_POLL_S)  # the kernel does not report when an ended process's port is free

    def stop(self, grace_s: float = 3.0) -> None:
        """End it: SIGTERM, then SIGKILL. Idempotent."""
        self.terminate()
        self.end(grace_s)

    def terminate(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    def end(self, grace_s: float) -> None:
        """Wait for its end; kill it after `grace_s`."""
        if self._process is not None:
            wait_or_kill(self._process, grace_s)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def controllable(self) -> bool:
        """True if its control socket accepts connections, or the target has none."""
        if not self._target.faults:
            return True
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            return probe.connect_ex(str(self.launch.control_socket)) == 0

    def raise_if_ended(self) -> None:
        code = None if self._process is None else self._process.poll()
        if code is not None:
            how = f"ended with exit code {code}" if code >= 0 else f"was killed by signal {-code}"
            raise SwitchFailedError(self.launch.name, how, self.log_tail())

    def log_tail(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-LOG_TAIL:])


def wait_or_kill(process: subprocess.Popen[Any], grace_s: float) -> None:
    """Wait for the end of a process; kill it after `grace_s`."""
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_ready(switches: Iterable[SwitchProcess], timeout_s: float) -> None:
    """Wait until the gRPC servers of all switches answer. Raises SwitchFailedError for one that ends or times
    out."""
    waiting = {s.launch.name: s for s in switches}
    answers: queue.SimpleQueue[str] = queue.SimpleQueue()
    channels = [_watch(s.launch, answers) for s in waiting.values()]
    deadline = time.monotonic() + timeout_s
    answered: set[str] = set()
    try:
        while waiting:
            with contextlib.suppress(queue.Empty):
                answered.add(answers.get(timeout=0.02 if answered else 0.1))
            for name in [n for n in answered if waiting[n].controllable()]:
                answered.remove(name)
                del waiting[name]
            for switch in waiting.values():
                switch.raise_if_ended()
            if waiting and time.monotonic() > deadline:
                late = next(iter(waiting.values()))
                what = f"did not answer at {late.launch.grpc_address} within {timeout_s:g} s"
                raise SwitchFailedError(late.launch.name, what, late.log_tail())
    finally:
        for channel in channels:
            channel.close()


def open_channel(address: str) -> grpc.Channel:
    """A channel to a switch's P4Runtime server on this machine; ignores proxies of the environment."""
    return grpc.insecure_channel(address, options=_CHANNEL_OPTIONS)


def _watch(launch: Launch, answers: queue.SimpleQueue[str]) -> grpc.Channel:
    channel = open_channel(launch.grpc_address)
    is_ready = threading.Event()

    def on_state(state: Any) -> None:
        if state is grpc.ChannelConnectivity.READY and not is_ready.is_set():
            is_ready.set()
            answers.put(launch.name)

    channel.subscribe(on_state, try_to_connect=True)
    return channel


def check_port(port: int, switch: str) -> None:
    """Raises PortTakenError, with the process that uses the port, unless a server can listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise PortTakenError(port, switch, _holder(port)) from None


def _holder(port: int) -> str:
    inodes = set(_listening(port))
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if any(_is_socket(f, inodes) for f in (entry / "fd").iterdir()):
                    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    return f"process {entry.name} ({' '.join(words).strip():.80})"
    return "a process that is not visible here"


def _is_socket(descriptor: Path, inodes: set[str]) -> bool:
    with contextlib.suppress(OSError):
        return str(descriptor.readlink()) in {f"socket:[{i}]" for i in inodes}
    return False


def _listening(port: int) -> Iterable[str]:
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    yield fields[9]
