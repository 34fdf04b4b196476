# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Random loss of received frames by the kernel, for any switch or host that reads the interface.

    python -m netfold.testbed.network.kernel_loss eth0 0.01

An XDP program of six instructions, which needs no queueing discipline or filter (bpf(2), linux/bpf.h,
linux/if_link.h). It outlives this process and ends with the interface.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence

from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.tools import tool

_BPF_CALLS = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
"""System call number of bpf(2) by machine; the C library has no function for it."""
_PROG_LOAD, _PROG_TYPE_XDP, _RANDOM = 5, 6, 7
_XDP_DROP, _XDP_PASS = 1, 2
_CALL, _JUMP_BELOW, _MOVE, _EXIT = 0x85, 0xA6, 0xB7, 0x95
_SETLINK, _ACKNOWLEDGED_REQUEST = 19, 5
_IFLA_XDP, _XDP_FD, _XDP_FLAGS, _NESTED, _DRIVER_MODE = 43, 1, 3, 0x8000, 4
_DROPPED = re.compile(r"rx_queue_\d+_xdp_drops: (\d+)")


def set_loss(interface: str, host_pid: int | None, probability: float) -> None:
    """Sets the probability of losing a received frame; 0 removes the program. `host_pid`: a process in the interface's
    namespace, None: this one's. Raises NetworkError."""
    if host_pid is None:
        _attach(interface, probability)
        return
    command = [
        tool("mnexec"),
        "-a",
        str(host_pid),
        sys.executable,
        "-m",
        __name__,
        interface,
        str(probability),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NetworkError(done.stderr.strip() or f"{interface}: cannot set a loss")


def lost(interface: str, host_pid: int | None = None) -> int:
    """Frames lost since the interface was created. Raises NetworkError."""
    inside = [] if host_pid is None else [tool("mnexec"), "-a", str(host_pid)]
    done = subprocess.run(
        [*inside, tool("ethtool"), "-S", interface], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NetworkError(f"{interface}: cannot count losses: {done.stderr.strip()}")
    return sum(int(count) for count in _DROPPED.findall(done.stdout))


def _attach(interface: str, probability: float) -> None:
    try:
        index = socket.if_nametoindex(interface)
        program = _load(probability) if probability > 0 else -1
        try:
            _set_xdp(index, program)
        finally:
            if program >= 0:
                os.close(program)
    except PermissionError as error:
        raise NetworkError(
            f"{interface}: cannot set a loss: XDP programs need CAP_BPF of the machine's root; softswitch loses frames "
            "without"
        ) from error
    except OSError as error:
        raise NetworkError(f"{interface}: cannot set a loss: {error.strerror}") from error


def _load(probability: float) -> int:
    """Descriptor of a program that drops a frame if a random 32-bit number is below a bound."""
    bound = min(round(probability * 2**32), 2**32 - 1)
    code = b"".join(
        struct.pack("=BBhI", operation, 0, jump, value)
        for operation, jump, value in (
            (_CALL, 0, _RANDOM),
            (_JUMP_BELOW, 2, bound),
            (_MOVE, 0, _XDP_PASS),
            (_EXIT, 0, 0),
            (_MOVE, 0, _XDP_DROP),
            (_EXIT, 0, 0),
        )
    )
    instructions, license_ = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "=IIQQ", _PROG_TYPE_XDP, len(code) // 8, ctypes.addressof(instructions), ctypes.addressof(license_)
    ).ljust(128, b"\0")
    library = ctypes.CDLL(None, use_errno=True)
    number = _BPF_CALLS.get(platform.machine())
    if number is None:
        raise NetworkError(f"losses are not known for {platform.machine()}")
    descriptor: int = library.syscall(number, _PROG_LOAD, attributes, len(attributes))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return descriptor


def _set_xdp(index: int, program: int) -> None:
    """One request of rtnetlink: this program, -1 is none, in the mode that counts what is dropped."""
    nested = struct.pack("=HHi", 8, _XDP_FD, program) + struct.pack("=HHI", 8, _XDP_FLAGS, _DRIVER_MODE)
    body = struct.pack("=BxHiII", 0, 0, index, 0, 0)
    body += struct.pack("=HH", 4 + len(nested), _IFLA_XDP | _NESTED) + nested
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        link.bind((0, 0))
        link.send(struct.pack("=IHHII", 16 + len(body), _SETLINK, _ACKNOWLEDGED_REQUEST, 1, 0) + body)
        (code,) = struct.unpack_from("=i", link.recv(4096), 16)
    if code:
        raise OSError(-code, os.strerror(-code))


def main(arguments: Sequence[str] | None = None) -> int:
    interface, probability = arguments or sys.argv[1:]
    try:
        _attach(interface, float(probability))
    except NetworkError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
