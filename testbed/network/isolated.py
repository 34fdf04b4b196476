# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a program that makes networks itself, such as pytest, where it can.

    python -m netfold.testbed.network.isolated COMMAND...

As root: here. Else in new namespaces of a user namespace; where those are forbidden, through sudo; without sudo, here:
tests then skip what needs namespaces.
"""

from __future__ import annotations

import os
import random
import string
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from netfold.testbed.network.isolation import holder_command, is_isolated
from netfold.testbed.network.sudo_user import sudo_command
from netfold.testbed.network.ways import Choice, Way, choose


def main(command: Sequence[str]) -> NoReturn:
    choice = Choice(None, {}) if is_isolated() else choose()
    if choice.way is Way.ROOTLESS:
        name = "i" + "".join(random.SystemRandom().choices(string.ascii_lowercase, k=5))
        os.execv(sys.executable, [*holder_command("create", name, choice.way), *command])
    for way, reason in choice.refused.items():
        if choice.way is None:
            sys.stderr.write(f"netfold: {way} does not work here: {reason}\n")
    sudo = sudo_command() if os.geteuid() != 0 and choice.way is None and not is_isolated() else None
    if sudo is None:
        os.execvp(command[0], list(command))
    code = subprocess.run([*sudo, *command], check=False).returncode
    # What root wrote here (results, caches) belongs to the user, who could not remove it otherwise.
    owner = f"{os.getuid()}:{os.getgid()}"
    subprocess.run([sudo[0], "chown", "-R", "--from=root", owner, "."], check=False)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
