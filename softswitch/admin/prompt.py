# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The prompt of `netfold softswitch cli`: lines go to a running switch, answers come back. And where its socket is."""

from __future__ import annotations

import cmd
import os
from pathlib import Path

from netfold.softswitch.admin.client import ControlClient, ControlError
from netfold.softswitch.admin.verbs.console import VERBS

THRIFT_PORT = 9090
"""Of simple_switch and simple_switch_CLI, where neither is told another."""


def thrift_socket(port: int) -> Path:
    """The control socket of a switch that was started with --thrift-port: the number stands for it, machine-wide."""
    runtime = (
        "/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", f"/tmp/netfold-{os.geteuid()}")
    )
    return Path(runtime) / "netfold" / f"softswitch-{port}.sock"


class Prompt(cmd.Cmd):
    """Reads commands until the end of the input. `failed` counts those that were refused."""

    prompt = "RuntimeCmd: "
    intro = "Control utility for runtime P4 table manipulation; `help` lists the commands"

    def __init__(self, client: ControlClient) -> None:
        super().__init__()
        self._client = client
        self.failed = 0

    def onecmd(self, line: str) -> bool:
        """Sends a line; True at the end."""
        if line.strip() in ("EOF", "exit", "quit"):
            self.stdout.write("\n")
            return True
        try:
            said = str(self._client.request("command", line=line))
        except ControlError as error:
            self.failed += 1
            said = f"Error: {str(error).removeprefix('command: ')}"
        if said:
            self.stdout.write(said.rstrip("\n") + "\n")
        return False

    def completenames(self, text: str, *_: object) -> list[str]:
        return [name for name in VERBS if name.startswith(text)]
