# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Who holds a network that `netfold up` has started: a process in the background that ends with `netfold
down`."""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from topologies.errors import NetworkError
from topologies.fabric import Fabric, FabricError
from topologies.network import Network
from topologies.state import RunDirectory

_READY = "ready"


def hold(fabric: Fabric, options: dict[str, Any], on_ready: Callable[[], None]) -> None:
    """Bring the network up and keep it until Ctrl-C or a signal. Raises NetworkError."""
    with Network(fabric, **options):
        on_ready()
        try:
            while True:
                signal.pause()
        except KeyboardInterrupt:
            return


def start(fabric: Fabric, options: dict[str, Any]) -> None:
    """Start a process that holds the network, and return when that is up. Raises NetworkError with its
    message."""
    directory = RunDirectory(options["name"])
    directory.prepare()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _be_keeper(fabric, options, directory, writer)
    os.close(writer)
    with os.fdopen(reader) as answer:
        try:
            text = answer.read()
        except KeyboardInterrupt:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
            raise
    if text != _READY:
        os.waitpid(pid, 0)
        raise NetworkError(text or "the process that should hold the network ended without a word")


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


def _be_keeper(fabric: Fabric, options: dict[str, Any], directory: RunDirectory, answer: int) -> None:
    """In the child: hold the network, tell the parent once, never return."""

    def say(text: str) -> None:
        os.write(answer, text.encode())
        os.close(answer)

    try:
        os.setsid()
        _redirect(directory)
        hold(fabric, options, on_ready=lambda: say(_READY))
    except SystemExit:
        pass
    except (NetworkError, FabricError) as error:
        say(str(error))
    except BaseException as error:
        traceback.print_exc()
        say(f"{type(error).__name__}: {error}")
    finally:
        sys.stderr.flush()
        os._exit(0)


def _redirect(directory: RunDirectory) -> None:
    """The terminal belongs to the parent; what the keeper has to say goes to its log."""
    log = os.open(directory.logs / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
