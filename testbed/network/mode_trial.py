# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tries one mode, in a process of its own: libraries of the caller may have threads, which user namespaces and forks do
not admit.

    python -m netfold.testbed.network.mode_trial rootless

Prints `works`, or the errno and what failed.
"""

from __future__ import annotations

import os
import sys

from netfold.testbed.network import namespaces
from netfold.testbed.network.modes import KINDS, WORKS, NetworkMode


def attempt(mode: NetworkMode) -> str:
    """Makes and prepares the namespaces, which end with this process; see `main` for the result."""
    try:
        namespaces.make(KINDS[mode])
        return _prepare_in_child()
    except OSError as error:
        return f"{error.errno} {error.strerror}"


def _prepare_in_child() -> str:
    """The PID namespace holds children of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            namespaces.prepare()
            os.write(writer, WORKS.encode())
        except OSError as error:
            os.write(writer, f"{error.errno} {error.strerror}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        text = answer.read().decode()
    os.waitpid(child, 0)
    return text


if __name__ == "__main__":
    sys.stdout.write(attempt(NetworkMode(sys.argv[1])))
