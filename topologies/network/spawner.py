# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Processes of a run: marked as its own, and ended by the kernel when their network's process ends."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from netfold.topologies.network.state import RUN_VARIABLE
from netfold.topologies.network.tools import tool


class Spawner:
    """Starts processes. PR_SET_PDEATHSIG is about the *thread* that started a process, so they are all started by one
    that lives until `close`, whichever thread asks."""

    def __init__(self, run: str) -> None:
        self.run = run
        self._thread = ThreadPoolExecutor(1, "spawner")

    def popen(self, command: Sequence[object], **options: Any) -> subprocess.Popen[Any]:
        """As subprocess.Popen."""
        words = [tool("setpriv"), "--pdeathsig", "KILL", *(str(c) for c in command)]
        environment = {**(options.pop("env", None) or os.environ), RUN_VARIABLE: self.run}
        start = functools.partial(subprocess.Popen[Any], words, env=environment, **options)
        return self._thread.submit(start).result()

    def close(self) -> None:
        """End the thread, and with it all that still runs."""
        self._thread.shutdown()
