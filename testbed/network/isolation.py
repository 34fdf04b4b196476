# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A command in the namespaces of its network: it runs itself again there, through `holder`.

`run_isolated` is for commands that make a network, `enter_network` for those that use one that is up.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from netfold.protocol.environment import Variable
from netfold.protocol.runtime import ROOTS_FOLDER, is_only_user, is_root
from netfold.testbed.network import namespaces
from netfold.testbed.network.errors import NetworkError, NotUpError
from netfold.testbed.network.holder import holder_of
from netfold.testbed.network.modes import ModeForbiddenError, NetworkMode, choose
from netfold.testbed.network.state import RunDirectory
from netfold.testbed.network.sudo_user import become_root, can_become_root

_HOLDER = "netfold.testbed.network.holder"


def run_isolated(
    name: str | None = None, mode: NetworkMode | None = None, allow_userland: bool = False
) -> NetworkMode:
    """Runs this program again, from its start, in new namespaces of the network; returns in there, with the mode. See
    `pick_mode`. `allow_userland`: the program can do without namespaces. Raises NetworkError."""
    if is_isolated():
        wanted = wanted_mode() if mode in (None, NetworkMode.AUTO) else mode
        return NetworkMode.USERLAND if wanted is NetworkMode.USERLAND else namespaces_mode()
    if not hasattr(sys.modules["__main__"], "__file__") and "-c" not in sys.orig_argv:
        raise NetworkError(
            "a prompt or notebook cannot be run again in namespaces: write a script, or be root"
        )
    directory = RunDirectory(name)
    return _run_again(holder_command("create", directory.name, pick_mode(mode, allow_userland)))


def pick_mode(mode: NetworkMode | None = None, allow_userland: bool = False) -> NetworkMode:
    """The mode of a new network. `mode`: None for $NETFOLD_NETWORK_MODE, else auto: namespaces of root's, else in a
    user namespace, else through sudo, which runs this command again, else `userland`. Raises NetworkError."""
    wanted = wanted_mode() if mode is None else mode
    if wanted is NetworkMode.USERLAND and not allow_userland:
        raise NetworkError("--network userland: only `netfold run` works without namespaces")
    choice = choose(wanted)
    if choice.mode is not None:
        return choice.mode
    if wanted is not NetworkMode.ROOTLESS and os.geteuid() != 0 and can_become_root():
        for refused, reason in choice.refused.items():
            sys.stderr.write(f"netfold: through sudo, since {refused} does not work: {reason}\n")
        become_root()
    if wanted is NetworkMode.AUTO and allow_userland:
        for refused, reason in choice.refused.items():
            sys.stderr.write(f"netfold: no namespaces: {refused} does not work: {reason}\n")
        return NetworkMode.USERLAND
    raise ModeForbiddenError(choice.refused)


def enter_network(name: str | None = None) -> None:
    """Runs this command again in the namespaces of the network, if it has some and this command is outside. Raises
    NotUpError."""
    if is_isolated():
        return
    directory = RunDirectory(name)
    if holder_of(directory.name) is not None:
        _run_again(holder_command("enter", directory.name))
    if directory.owned and os.geteuid() == 0:
        return  # a program of root's has made it in the namespaces of this one
    if not is_root() and (ROOTS_FOLDER / directory.name / "state.json").exists() and can_become_root():
        become_root()
    raise NotUpError(directory.name)


def namespaces_mode() -> NetworkMode:
    """The mode of a network in the namespaces of this process."""
    return NetworkMode.ROOTLESS if is_only_user() else NetworkMode.MININET


def is_isolated() -> bool:
    """True in the network namespace of a holder, and in one that $NETFOLD_NAMESPACE names by its number."""
    wanted = os.environ.get(Variable.NAMESPACE, "")
    return wanted.isdecimal() and int(wanted) == namespaces.identity("net")


def holder_command(action: str, *arguments: str) -> list[str]:
    """The words of a command line, to be followed by those of a command."""
    return [sys.executable, "-P", "-m", _HOLDER, action, *arguments]


def wanted_mode() -> NetworkMode:
    """$NETFOLD_NETWORK_MODE, else auto. Raises NetworkError."""
    text = os.environ.get(Variable.NETWORK_MODE) or NetworkMode.AUTO
    try:
        return NetworkMode(text)
    except ValueError:
        raise NetworkError(
            f"{Variable.NETWORK_MODE} is '{text}': expected one of {', '.join(NetworkMode)}"
        ) from None


def _run_again(holder: list[str]) -> NoReturn:
    """This command, by a holder."""
    os.execv(sys.executable, [*holder, sys.executable, *sys.orig_argv[1:]])
