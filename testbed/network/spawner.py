# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Starts processes that carry the run's id and end with the network's process."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from netfold.protocol.environment import Variable
from netfold.testbed.network.namespaces import identity
from netfold.testbed.network.tools import tool


class Spawner:
    """Starts processes. PR_SET_PDEATHSIG refers to the *thread* that started a process, so one thread, which lives
    until `close`, starts all. `environment`: added to that of all processes from now on."""

    def __init__(self, run: str) -> None:
        self.environment: dict[str, str] = {}
        self._marks = {Variable.NETWORK: run, Variable.NAMESPACE: str(identity("net"))}
        self._thread = ThreadPoolExecutor(1, "spawner")

    def popen(self, command: Sequence[object], **options: Any) -> subprocess.Popen[Any]:
        """Like subprocess.Popen."""
        words = [tool("setpriv"), "--pdeathsig", "KILL", *(str(c) for c in command)]
        given: dict[str, str] | None = options.pop("env", None)
        chosen = self.environment | given if given else os.environ | self.environment
        environment = dict(chosen) | self._marks
        start = functools.partial(subprocess.Popen[Any], words, env=environment, **options)
        return self._thread.submit(start).result()

    def close(self) -> None:
        """End the thread, which ends all running processes."""
        self._thread.shutdown()
