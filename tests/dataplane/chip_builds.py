# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The Tofino programs for the models, compiled beside the tests that come before: it takes minutes on one core."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from netfold.p4src.tools.p4build import REPOSITORY, P4BuildError
from netfold.p4src.tools.tofino import find_tools
from tests.dataplane import chip
from tests.dataplane.chip import CHIP_CPU_PORT

DEADLINE_S = 4 * 3600.0


def why_not(name: str) -> str | None:
    """Why a chip's program cannot run here; None if it can."""
    try:
        find_tools()
    except P4BuildError as missing:
        return str(missing)
    return chip.missing(name)


class ChipBuilds:
    """Each chip is compiled from `start` on; `stop` ends what is under way and takes all away."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="netfold-chips-")

    def start(self, name: str) -> None:
        """Does nothing for a chip that has been started."""
        if name in self._running:
            return
        command = ["nice", "-n", "15", sys.executable, "-m", "netfold.p4src.tools.tofino", name]
        command += ["--cpu-port", str(CHIP_CPU_PORT), "--out", self._folder.name]
        self._running[name] = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def result(self, name: str) -> Path:
        """The folder with the chip's context. Raises BuildError."""
        self.start(name)
        _, said = self._running[name].communicate(timeout=DEADLINE_S)
        if self._running[name].returncode:
            raise P4BuildError(said)
        (context,) = (Path(self._folder.name) / name).glob("*/context.json")
        return context.parent

    def stop(self) -> None:
        for process in self._running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._folder.cleanup()
