# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A program at a terminal of its own, for the prompts of Mininet."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest

_COLOR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A program at a terminal of its own."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.master, slave = pty.openpty()
        # what a script starts in the background has interrupts ignored, and leaves that to all its children
        command = ["env", "--default-signal=INT", "setsid", "--ctty", *command]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd=folder)
        os.close(slave)
        self.seen = ""

    def interrupt(self) -> None:
        """As a user does, again where nothing happens: Mininet's shell now and then misses one."""
        for _ in range(5):
            os.write(self.master, b"\x03")
            with contextlib.suppress(AssertionError):
                self.until("mininet>", 10.0)
                return
        raise AssertionError(self.seen)

    def until(self, text: str, timeout_s: float = 60.0) -> str:
        """Returns the output until `text`, that included, without colors, which `ip` of newer releases has."""
        deadline = time.monotonic() + timeout_s
        while text not in self.seen:
            assert select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))[0], self.seen
            try:
                self.seen += os.read(self.master, 4096).decode(errors="replace")
            except OSError:  # it has ended
                pytest.fail(self.seen)
        before, _, self.seen = self.seen.partition(text)
        return _COLOR.sub("", before + text)

    def type(self, line: str) -> None:
        os.write(self.master, line.encode() + b"\n")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
