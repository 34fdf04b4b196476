# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The socket of a run's page. The run has a loopback interface of its own; browsers are outside."""

from __future__ import annotations

import os
import socket

from netfold.protocol.environment import Variable
from netfold.testbed.errors import RunError
from netfold.testbed.network.isolation import is_isolated


def page_socket(port: int) -> int:
    """The descriptor of a socket that listens at this port of loopback, outside the network's namespaces. Call it
    before the command enters them, and again within, where it returns the inherited one. Raises RunError."""
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
