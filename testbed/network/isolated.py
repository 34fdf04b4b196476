# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a program that makes networks itself, such as pytest, where it can.

    python -m netfold.testbed.network.isolated COMMAND...

In new namespaces, with a folder for the files of networks that is seen only there: two runs on one machine do not meet.
As root with root's rights, else in a user namespace; where those are forbidden, through sudo; without sudo, here: tests
then skip what needs namespaces.
"""

from __future__ import annotations

import os
import random
import string
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from netfold.protocol.environment import Variable
from netfold.testbed.network.isolation import holder_command, is_isolated
from netfold.testbed.network.modes import ModeChoice, choose
from netfold.testbed.network.sudo_user import sudo_command

_MOUNT = f'mount -t tmpfs -o mode=755 netfold "${Variable.RUN_DIR}" && exec "$@"'
_IN_OWN_FOLDER = ["unshare", "--mount", "sh", "-c", _MOUNT, "sh"]
"""The holder needs the folder that it has, so another mount namespace hides it."""


def main(command: Sequence[str]) -> NoReturn:
    choice = ModeChoice(None, {}) if is_isolated() else choose()
    if choice.mode is not None:
        name = "i" + "".join(random.SystemRandom().choices(string.ascii_lowercase, k=5))
        holder = holder_command("create", name, choice.mode)
        os.execv(sys.executable, [*holder, *_IN_OWN_FOLDER, *command])
    for mode, reason in choice.refused.items():
        sys.stderr.write(f"netfold: {mode} does not work here: {reason}\n")
    sudo = sudo_command() if os.geteuid() != 0 and not is_isolated() else None
    if sudo is None:
        os.execvp(command[0], list(command))
    code = subprocess.run([*sudo, *sys.orig_argv], check=False).returncode
    # Results and caches of root become the files of the user, as root's they could not be removed.
    owner = f"{os.getuid()}:{os.getgid()}"
    subprocess.run([sudo[0], "chown", "-R", "--from=root", owner, "."], check=False)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
