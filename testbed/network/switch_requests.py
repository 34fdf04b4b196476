# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Switches of a network that is up, killed and started again on behalf of other processes.

A switch is a child of the process that owns the network, so `netfold network switch` asks that process, over a socket
in the run directory, which is open to its user alone. A request and its answer are one line each: `kill leaf1` or
`start leaf1`, and an empty line or the error.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import socketserver
import threading
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.network import Network

log = logging.getLogger(__name__)

_ANSWER_S = 120.0
"""Time for the answer: a switch on a busy machine takes long to start, and its own limit is shorter."""
_REQUEST_S = 5.0
_LINE = 256


class SwitchAction(Enum):
    KILL = "kill"
    START = "start"


def request(owner: Path, action: SwitchAction, switch: str) -> None:
    """Ask the process that serves at the socket `owner`. Raises NetworkError: with its error, or if it does not
    answer."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ANSWER_S)
            connection.connect(str(owner))
            connection.sendall(f"{action.value} {switch}\n".encode())
            with connection.makefile() as answers:
                answer = answers.readline()
    except OSError as error:
        raise NetworkError(
            f"the network's process does not answer at {owner}: {error.strerror or error}"
        ) from error
    if not answer.endswith("\n"):
        raise NetworkError(f"the network's process ended before switch '{switch}' had {action.value}ed")
    if answer != "\n":
        raise NetworkError(answer.strip())


@contextlib.contextmanager
def serving(network: Network, owner: Path) -> Iterator[None]:
    """Serve requests at the socket `owner` in threads of their own. The network's end does not wait for a switch that
    is just starting: that one ends with the network."""
    owner.unlink(missing_ok=True)
    with _Server(network, owner) as server:
        thread = threading.Thread(target=server.serve_forever, name="switch-requests", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            owner.unlink(missing_ok=True)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, network: Network, owner: Path) -> None:
        self.network = network
        self.one_at_a_time = threading.Lock()
        super().__init__(str(owner), _Handler)


class _Handler(socketserver.StreamRequestHandler):
    timeout = _REQUEST_S
    server: _Server

    def handle(self) -> None:
        action, _, switch = self.rfile.readline(_LINE).decode(errors="replace").strip().partition(" ")
        try:
            with self.server.one_at_a_time:
                _act(self.server.network, SwitchAction(action), switch)
            answer = ""
        except (NetworkError, ValueError) as error:
            answer = " ".join(str(error).split())
        except Exception as error:
            log.exception("request %s %s", action, switch)
            answer = f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError):  # the user no longer waits
            self.wfile.write(f"{answer}\n".encode())


def _act(network: Network, action: SwitchAction, name: str) -> None:
    switch = network.switch(name)
    if action is SwitchAction.KILL:
        if switch.pid is None:
            raise NetworkError(f"switch '{name}' does not run")
        switch.kill()
        return
    if switch.pid is not None:
        raise NetworkError(f"switch '{name}' runs already")
    switch.start()
