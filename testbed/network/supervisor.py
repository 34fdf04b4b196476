# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The background process that owns the network of `netfold network up`, until `netfold network down`."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.holder import holder_of
from netfold.testbed.network.isolation import holder_command, is_isolated
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.network.signals import wait_for_signal
from netfold.testbed.network.state import RunDirectory, already_up
from netfold.testbed.network.switch_requests import serving
from netfold.topologies.fabric import Fabric, FabricError

_READY = b"ready"


def hold(fabric: Fabric, options: dict[str, Any], on_ready: Callable[[], None], prompt: bool = False) -> None:
    """Start the network and keep it until a signal, or until the user leaves the prompt. Raises NetworkError."""
    with EmulatedNetwork(fabric, **options) as net, serving(net, RunDirectory(net.name).owner_socket):
        on_ready()
        if prompt:
            net.prompt()
            return
        with contextlib.suppress(KeyboardInterrupt):
            wait_for_signal()


def start(fabric: Fabric, options: dict[str, Any], mode: NetworkMode | None = None) -> None:
    """Start the supervisor and wait until the network is up. `mode`: in new namespaces; None: in those of this process.
    Raises NetworkError with its message.

    A new interpreter, not a fork: threads of this process (gRPC's) do not survive a fork."""
    directory = RunDirectory(options["name"])
    directory.prepare()
    if directory.owned or (mode is not None and holder_of(directory.name) is not None):
        raise already_up(directory)
    holder = [] if mode is None else holder_command("create", directory.name, mode)
    importable = os.pathsep.join(p for p in sys.path if p)
    with (directory.logs / "supervisor.log").open("wb") as log:
        process = subprocess.Popen(
            [*holder, sys.executable, "-P", "-m", "netfold.testbed.network.supervisor"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PYTHONPATH": importable},
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with process.stdin, process.stdout:
            with contextlib.suppress(BrokenPipeError):  # it ended at once: the answer is empty
                process.stdin.write(pickle.dumps((fabric, options)))
                process.stdin.close()
            answer = process.stdout.read()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    if answer != _READY:
        process.wait()
        raise NetworkError(answer.decode() or _last_words(directory.logs / "supervisor.log"))


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return f"the supervisor ended: {lines[-1]}" if lines else "the supervisor ended without output"


def stop(directory: RunDirectory, timeout_s: float = 30.0) -> str:
    """End the network's owner, or clean up after a crashed one; a message for the user."""
    state = directory.read()
    holder = None if is_isolated() else holder_of(directory.name)
    if holder is not None:
        _end(holder.pid, timeout_s)
        return f"network '{directory.name}' is down"
    if state is not None and directory.owned:
        _end(state.owner, timeout_s)
        return f"network '{state.name}' is down"
    if not directory.path.exists():
        return "no network was up"
    directory.acquire()
    try:
        found = directory.clear()
    finally:
        directory.release()
    return "removed the remains of a crashed run" if found else "no network was up"


def _end(owner: int, timeout_s: float) -> None:
    try:
        descriptor = os.pidfd_open(owner)
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    except ProcessLookupError:
        return
    try:
        if not select.select([descriptor], [], [], timeout_s)[0]:
            raise NetworkError(
                f"process {owner}, which owns the network, did not end within {timeout_s:g} s; kill it and retry"
            )
    finally:
        os.close(descriptor)


def _supervise() -> None:
    """Own the network that the parent describes on stdin; send the result once on stdout."""
    fabric, options = pickle.load(sys.stdin.buffer)
    try:
        hold(fabric, options, on_ready=lambda: _send_result(_READY))
    except (NetworkError, FabricError) as error:
        _send_result(str(error).encode())
    except Exception as error:
        _send_result(f"{type(error).__name__}: {error}".encode())
        traceback.print_exc()


def _send_result(answer: bytes) -> None:
    """The parent reads stdout to its end: redirects stdout to the log afterwards."""
    os.write(sys.stdout.fileno(), answer)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


if __name__ == "__main__":
    _supervise()
