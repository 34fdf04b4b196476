# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of AF_XDP ports (`xdp:IFACE`), which are loaded before the process gives up root's rights."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from softswitch.engine import abi
from softswitch.errors import SwitchError

PREFIX = "xdp:"


class XdpError(SwitchError):
    """A program of an AF_XDP port cannot be loaded."""


@dataclass(frozen=True)
class XdpProgram:
    """Descriptors of a port's XDP program, and of its table of sockets, one for each thread."""

    program: int
    sockets: int

    def close(self) -> None:
        os.close(self.program)
        os.close(self.sockets)


def is_xdp(interface: str) -> bool:
    return interface.startswith(PREFIX)


def load(cache_dir: Path, threads: int, what: str) -> XdpProgram:
    """`what`: the port, for errors. Raises XdpError."""
    program, sockets = ctypes.c_int(), ctypes.c_int()
    library = abi.engine_library(cache_dir)
    result = library.ss_xdp_load(threads, ctypes.byref(program), ctypes.byref(sockets))
    if result < 0:
        reason = os.strerror(-result)
        raise XdpError(
            f"{what}: the XDP program cannot be loaded: {reason}: expected CAP_BPF and CAP_NET_ADMIN at the start "
            "of the switch, as root has, and a kernel with AF_XDP"
        )
    return XdpProgram(program.value, sockets.value)
