# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Who holds a network that `netfold up` has started: a process in the background that ends with `netfold
down`."""

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
from typing import Any

from netfold.topologies.fabric import Fabric, FabricError
from netfold.topologies.network.builder import Network
from netfold.topologies.network.errors import NetworkError
from netfold.topologies.network.signals import wait_for_signal
from netfold.topologies.network.state import RunDirectory

_READY = b"ready"


def hold(fabric: Fabric, options: dict[str, Any], on_ready: Callable[[], None], prompt: bool = False) -> None:
    """Bring the network up and keep it until Ctrl-C or a signal, or until the user leaves the prompt. Raises
    NetworkError."""
    with Network(fabric, **options) as net:
        on_ready()
        if prompt:
            net.prompt()
            return
        with contextlib.suppress(KeyboardInterrupt):
            wait_for_signal()


def start(fabric: Fabric, options: dict[str, Any]) -> None:
    """Start a process that holds the network, and return when that is up. Raises NetworkError with its
    message.

    It is a new interpreter, not a fork: this process may have threads (gRPC's), which do not survive one."""
    directory = RunDirectory(options["name"])
    directory.prepare()
    importable = os.pathsep.join(p for p in sys.path if p)
    with (directory.logs / "keeper.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "netfold.topologies.network.keeper"],
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
            with contextlib.suppress(BrokenPipeError):  # it died at once; its silence says so
                process.stdin.write(pickle.dumps((fabric, options)))
                process.stdin.close()
            answer = process.stdout.read()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    if answer != _READY:
        process.wait()
        raise NetworkError(answer.decode() or "the process that should hold the network ended without a word")


def stop(directory: RunDirectory, timeout_s: float = 30.0) -> str:
    """End the network's owner and wait for it, or clean up after a dead one; says what was done."""
    state = directory.read()
    if state is not None and directory.owned:
        _end(state.owner, timeout_s)
        return f"network '{state.name}' ({state.fabric}) is down"
    if not directory.path.exists():
        return "nothing was up"
    directory.acquire()
    try:
        found = directory.clear()
    finally:
        directory.release()
    return "removed what a crashed run had left" if found else "nothing was up"


def _end(owner: int, timeout_s: float) -> None:
    try:
        descriptor = os.pidfd_open(owner)
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    except ProcessLookupError:
        return
    try:
        if not select.select([descriptor], [], [], timeout_s)[0]:
            raise NetworkError(
                f"process {owner}, which holds the network, does not end; kill it, then try again"
            )
    finally:
        os.close(descriptor)


def _be_keeper() -> None:
    """Hold the network that the parent describes on stdin; tell it once on stdout how that went."""
    fabric, options = pickle.load(sys.stdin.buffer)
    try:
        hold(fabric, options, on_ready=lambda: _say(_READY))
    except (NetworkError, FabricError) as error:
        _say(str(error).encode())
    except Exception as error:
        _say(f"{type(error).__name__}: {error}".encode())
        traceback.print_exc()


def _say(answer: bytes) -> None:
    """The parent reads to the end of stdout, so from here on that is the log too."""
    os.write(sys.stdout.fileno(), answer)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


if __name__ == "__main__":
    _be_keeper()
