# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The prompt of `softswitch cli`: sends each line to a running switch and prints the answer."""

from __future__ import annotations

import cmd

from softswitch.admin.client import ControlClient, ControlSocketError
from softswitch.admin.verbs.console import VERBS


class Prompt(cmd.Cmd):
    """Reads commands until the end of the input. `failed` counts the commands that failed."""

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
            answer = str(self._client.request("command", line=line))
        except ControlSocketError as error:
            self.failed += 1
            answer = f"Error: {str(error).removeprefix('command: ')}"
        if answer:
            self.stdout.write(answer.rstrip("\n") + "\n")
        return False

    def completenames(self, text: str, *_: object) -> list[str]:
        return [name for name in VERBS if name.startswith(text)]
