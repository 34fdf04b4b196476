# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The programs of the system that networks are built with."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterable

from netfold.topologies.network.errors import MissingToolError

PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "mnexec": "mininet",
    "setpriv": "util-linux",
    "tcpdump": "tcpdump",
}
ADMINISTRATOR = "/usr/sbin:/sbin"
"""Folders that are not on everybody's PATH, and that sudo may not add."""


@functools.cache
def tool(name: str) -> str:
    """Where a program is. Raises MissingToolError with the package that has it."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{ADMINISTRATOR}")
    if found is None:
        raise MissingToolError(name, PACKAGES[name])
    return found


def check_tools(names: Iterable[str]) -> None:
    for name in names:
        tool(name)
