# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the modes in which a network can run on this machine. Each is tried before anything is made; capabilities and
settings do not tell.

Settings are read only to name what has forbidden a mode.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.namespaces import PRIVATE, Namespaces

TRIAL_S = 30
"""On a busy machine."""

WORKS = "works"
"""Answer of a trial."""

_TRIAL = "netfold.testbed.network.mode_trial"


class NetworkMode(StrEnum):
    """Values of `--network`."""

    AUTO = "auto"
    MININET = "mininet"
    """Namespaces of its own, made with the rights of root."""
    ROOTLESS = "rootless"
    """Namespaces below a user namespace, made without any right."""
    USERLAND = "userland"
    """Processes alone, without namespaces (userland_network.py): `netfold run` only."""


KINDS: Mapping[NetworkMode, Namespaces] = {
    NetworkMode.MININET: PRIVATE,
    NetworkMode.ROOTLESS: PRIVATE | Namespaces.USER,
    NetworkMode.USERLAND: Namespaces(0),
}


class ModeForbiddenError(NetworkError):
    """No allowed mode works here; the message names the settings that forbid them."""

    def __init__(self, reasons: Mapping[NetworkMode, str]) -> None:
        super().__init__(
            "network namespaces need root, or user namespaces; neither works here: "
            + "; ".join(f"{mode}: {reason}" for mode, reason in reasons.items())
        )


@dataclass(frozen=True)
class ModeChoice:
    """The first mode that works, None if none does; why those before it do not."""

    mode: NetworkMode | None
    refused: Mapping[NetworkMode, str]


def choose(wanted: NetworkMode = NetworkMode.AUTO) -> ModeChoice:
    """Among the modes with namespaces, or the one that is wanted. Takes tens of milliseconds."""
    candidates = [wanted]
    if wanted is NetworkMode.AUTO:
        candidates = (
            [NetworkMode.MININET, NetworkMode.ROOTLESS] if os.geteuid() == 0 else [NetworkMode.ROOTLESS]
        )
    refused: dict[NetworkMode, str] = {}
    for mode in candidates:
        reason = try_mode(mode)
        if reason is None:
            return ModeChoice(mode, refused)
        refused[mode] = reason
    return ModeChoice(None, refused)


def try_mode(mode: NetworkMode) -> str | None:
    """None if a new process can make and prepare the namespaces of `mode`, else what failed and which setting forbids
    it."""
    if not KINDS[mode]:
        return None
    command = [sys.executable, "-P", "-m", _TRIAL, mode]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TRIAL_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the trial did not end within {TRIAL_S} s"
    if done.stdout == WORKS:
        return None
    if not done.stdout:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return f"the trial failed: {lines[-1]}"
    return _explained(mode, done.stdout)


def _explained(mode: NetworkMode, answer: str) -> str:
    number, _, text = answer.partition(" ")
    settings = _settings(mode, int(number) if number.isdecimal() else 0)
    return text + (f" ({settings[0]})" if settings else "")


def _settings(mode: NetworkMode, number: int) -> Sequence[str]:
    """List the settings that may have forbidden a mode, the likeliest first."""
    found = []
    user = mode is NetworkMode.ROOTLESS
    if user and number == errno.ENOSPC and _setting("user/max_user_namespaces") == "0":
        found.append("sysctl user.max_user_namespaces is 0: a number above 0 allows it")
    if number == errno.ENOSPC:
        found.append("a limit of /proc/sys/user/max_*_namespaces is reached, or 32 namespaces are nested")
    if user and _setting("kernel/unprivileged_userns_clone") == "0":
        found.append("sysctl kernel.unprivileged_userns_clone is 0: 1 allows it")
    if user and _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        found.append(
            "AppArmor restricts it: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile with "
            "`userns,` for this Python, allows it"
        )
    if number == errno.EPERM and _status("Seccomp") == "2":
        found.append("a seccomp filter, as containers have: --security-opt seccomp=unconfined allows it")
    if not user and number == errno.EPERM:
        found.append(
            "root has no CAP_SYS_ADMIN here, as in a container: --cap-add SYS_ADMIN,NET_ADMIN allows it"
        )
    if user and number == errno.EPERM and os.geteuid() == 0:
        found.append("root without CAP_SETFCAP cannot map itself into a user namespace: another user can")
    return found


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None


def _status(key: str) -> str | None:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return value.strip()
    return None
