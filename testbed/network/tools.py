# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""System programs that networks need."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterable

from netfold.testbed.network.errors import MissingToolError

PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "mnexec": "mininet",
    "setpriv": "util-linux",
    "tcpdump": "tcpdump",
    "unshare": "util-linux",
}
ADMINISTRATOR = "/usr/sbin:/sbin"
"""Folders that a user's PATH may lack, with or without sudo."""


@functools.cache
def tool(name: str) -> str:
    """Path of a program. Raises MissingToolError with its package."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{ADMINISTRATOR}")
    if found is None:
        raise MissingToolError(name, PACKAGES[name])
    return found


def check_tools(names: Iterable[str]) -> None:
    for name in names:
        tool(name)
